import { ADMIN_LINK_PATH } from '../../../src/accounts/accounts/admin-links.js';
import type { HtmlReply } from '../../http/reply.js';
import { successLocation } from './messages.js';
import { signedInLinkPage, type OpenedLink } from './signed-in-link.js';

/** Renders the page of an admin link. */
export function adminLinkPage(opened: OpenedLink): HtmlReply<200> {
  return signedInLinkPage(opened, {
    title: 'Become an admin',
    incomplete: 'This address is incomplete. Open the whole link again.',
    signIn: 'Sign in to the account that the link is for.',
    openAgain: 'open the link again.',
    signedIn:
      'You are signed in to this account. The link makes the account an admin, and works once.',
    form: {
      id: 'admin',
      endpoint: ['POST', ADMIN_LINK_PATH],
      successLocation: successLocation('/dashboard', 'admin'),
      button: 'Become an admin',
    },
  });
}
