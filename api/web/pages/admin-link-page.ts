import { ADMIN_LINK_PATH } from '../../../src/accounts/accounts/admin-links.js';
import type { HtmlReply } from '../../http/reply.js';
import { successLocation } from './messages.js';
import { signedInLinkPage, type OpenedLink } from './signed-in-link.js';

/** Renders the page of an admin link. */
export function adminLinkPage(opened: OpenedLink): HtmlReply<200> {
  return signedInLinkPage(opened, {
    title: 'Become an admin',
    incomplete: 'This address is not complete. Open the whole link once more.',
    signIn: 'Sign in to the account that the link is for.',
    openAgain: 'open the link once more.',
    signedIn: "You are signed in to this account. The link makes it an admin's, and works once.",
    form: {
      id: 'admin',
      endpoint: ['POST', ADMIN_LINK_PATH],
      successLocation: successLocation('/dashboard', 'admin'),
      button: 'Become an admin',
    },
  });
}
