import { html, type Html } from '../../../src/lib/html.js';
import type { HtmlReply } from '../../http/reply.js';
import { form, type Form } from './forms.js';
import { page } from './layout.js';
import { passwordForm } from './login-page.js';

/** Facts of a request that opens a link with a token. */
export interface OpenedLink {
  /** Address of the account that is signed in; undefined without a session. */
  readonly email: string | undefined;
  readonly hasToken: boolean;
}

interface LinkWords {
  readonly title: string;
  readonly incomplete: string;
  /** The request to sign in; the page adds how to sign in without a password. */
  readonly signIn: string;
  /** The request to open the link again after another sign-in. */
  readonly openAgain: string;
  readonly signedIn: string;
  readonly form: Pick<Form, 'id' | 'endpoint' | 'successLocation' | 'button'>;
}

/** Renders a link's page. Only its button uses up the token: link scanners and previews open the page as well. */
export function signedInLinkPage(opened: OpenedLink, words: LinkWords): HtmlReply<200> {
  return page({ title: words.title, content: content(opened, words) });
}

function content({ email, hasToken }: OpenedLink, words: LinkWords): Html {
  if (!hasToken) return html`<p>${words.incomplete}</p>`;
  if (email === undefined) {
    return html`<p>
        ${words.signIn} To sign in without a password, use the
        <a href="/login">sign-in page</a>, and ${words.openAgain}
      </p>
      <section aria-labelledby="with-password">
        <h2 id="with-password">With your password</h2>
        ${passwordForm('here')}
      </section>`;
  }
  return html`<section aria-labelledby="whose">
    <h2 id="whose">${email}</h2>
    <p>${words.signedIn}</p>
    ${form({ ...words.form, token: true })}
  </section>`;
}
