import type { HtmlReply } from '../../http/reply.js';
import { successLocation } from './messages.js';
import { signedInLinkPage, type OpenedLink } from './signed-in-link.js';

/** Renders `/verify-email`. */
export function verifyEmailPage(opened: OpenedLink): HtmlReply<200> {
  return signedInLinkPage(opened, {
    title: 'Confirm your address',
    incomplete: 'This address is not complete. Open the link of the mail once more.',
    signIn: 'Sign in to the account whose address you want to confirm.',
    openAgain: 'open the link of the mail once more.',
    signedIn: 'You are signed in to this account. Did you want the mail, and is the mailbox yours?',
    form: {
      id: 'verify',
      endpoint: ['POST', '/api/auth/verify-email'],
      successLocation: successLocation('/dashboard', 'address-confirmed'),
      button: 'Confirm the address',
    },
  });
}
