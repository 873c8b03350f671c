import { html } from '../../src/lib/html.js';

/** On which somebody says to a stand-in of a provider who they are: no password is asked for. */
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

/** Who they say they are. */
export function personOf(form: string): { readonly email: string; readonly verified: boolean } {
  const fields = new URLSearchParams(form);
  return { email: fields.get('email') ?? '', verified: fields.has('verified') };
}
