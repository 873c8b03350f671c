import type { HtmlReply } from '../../http/reply.js';
import { successLocation } from './messages.js';
import { signedInLinkPage, type OpenedLink } from './signed-in-link.js';

/** Renders `/verify-email`. */
export function verifyEmailPage(opened: OpenedLink): HtmlReply<200> {
  return signedInLinkPage(opened, {
    title: 'Confirm your address',
    incomplete: 'This address is incomplete. Open the link in the mail again.',
    signIn: 'Sign in to the account whose address you want to confirm.',
    openAgain: 'open the link in the mail again.',
    signedIn:
      'You are signed in to this account. Confirm only if you requested the mail and the mailbox is yours.',
    form: {
      id: 'verify',
      endpoint: ['POST', '/api/auth/verify-email'],
      successLocation: successLocation('/dashboard', 'address-confirmed'),
      button: 'Confirm the address',
    },
  });
}
