import { html, type Html } from '../../../src/lib/html.js';
import type { HtmlReply } from '../../http/reply.js';
import { form } from './forms.js';
import { page } from './layout.js';
import { passwordForm } from './login-page.js';
import { successLocation } from './messages.js';

/** Renders `/verify-email`. Only the button uses up the token: link scanners open the page as well. */
export function verifyEmailPage(given: {
  readonly email: string | undefined;
  readonly hasToken: boolean;
}): HtmlReply<200> {
  return page({ title: 'Confirm your address', content: content(given) });
}

function content({ email, hasToken }: Parameters<typeof verifyEmailPage>[0]): Html {
  if (!hasToken) {
    return html`<p>This address is not complete. Open the link of the mail once more.</p>`;
  }
  if (email === undefined) {
    return html`<p>
        Sign in to the account whose address you want to confirm. If you sign in to it in another
        way than by password, <a href="/login">do that</a>, and open the link of the mail once more.
      </p>
      <section aria-labelledby="with-password">
        <h2 id="with-password">With your password</h2>
        ${passwordForm('here')}
      </section>`;
  }
  return html`<section aria-labelledby="whose">
    <h2 id="whose">${email}</h2>
    <p>You are signed in to this account. Did you want the mail, and is the mailbox yours?</p>
    ${form({
      id: 'verify',
      endpoint: ['POST', '/api/auth/verify-email'],
      token: true,
      successLocation: successLocation('/dashboard', 'address-confirmed'),
      button: 'Confirm the address',
    })}
  </section>`;
}
