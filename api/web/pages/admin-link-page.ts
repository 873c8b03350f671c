import { ADMIN_LINK_PATH } from '../../../src/accounts/accounts/admin-links.js';
import { html, type Html } from '../../../src/lib/html.js';
import type { HtmlReply } from '../../http/reply.js';
import { form } from './forms.js';
import { page } from './layout.js';
import { passwordForm } from './login-page.js';
import { successLocation } from './messages.js';

/** Renders the page of an admin link. Only the button uses up the token: link previews open the page as well. */
export function adminLinkPage(given: {
  readonly email: string | undefined;
  readonly hasToken: boolean;
}): HtmlReply<200> {
  return page({ title: 'Become an admin', content: content(given) });
}

function content({ email, hasToken }: Parameters<typeof adminLinkPage>[0]): Html {
  if (!hasToken) return html`<p>This address is not complete. Open the whole link once more.</p>`;
  if (email === undefined) {
    return html`<p>
        Sign in to the account that the link is for. If you sign in to it in another way than by
        password, <a href="/login">do that</a>, and open the link once more.
      </p>
      <section aria-labelledby="with-password">
        <h2 id="with-password">With your password</h2>
        ${passwordForm('here')}
      </section>`;
  }
  return html`<section aria-labelledby="whose">
    <h2 id="whose">${email}</h2>
    <p>You are signed in to this account. The link makes it an admin's, and works once.</p>
    ${form({
      id: 'admin',
      endpoint: ['POST', ADMIN_LINK_PATH],
      token: true,
      successLocation: successLocation('/dashboard', 'admin'),
      button: 'Become an admin',
    })}
  </section>`;
}
