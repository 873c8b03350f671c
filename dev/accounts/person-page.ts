import { html } from '../../src/lib/html.js';

/** The page on which a person enters their identity for a stand-in provider: it has no password field. */
export const personPage = (provider: string): string =>
  html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <title>${provider}</title>
      </head>
      <body>
        <h1>${provider}, for developers</h1>
        <form method="post">
          <label>Email <input name="email" type="email" required autocomplete="email" /></label>
          <label><input name="verified" type="checkbox" checked /> verified</label>
          <button>Continue</button>
        </form>
      </body>
    </html>`.text;

/** Returns the person entered on the page. */
export function personOf(form: string): { readonly email: string; readonly verified: boolean } {
  const fields = new URLSearchParams(form);
  return { email: fields.get('email') ?? '', verified: fields.has('verified') };
}
