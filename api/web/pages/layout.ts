import { html, type HtmlPart } from '../../../src/lib/html.js';
import { htmlReply, type HtmlReply } from '../../http/reply.js';
import { SCRIPT, STYLE } from './assets.js';

/** Pages only load, run and connect to our own origin; only the script submits forms. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "form-action 'none'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ');

export interface Page {
  readonly title: string;
  /** The result of the action that led to this page. */
  readonly notice?: string | undefined;
  readonly problem?: string | undefined;
  readonly content: HtmlPart;
}

export function page({ content, notice, problem, title }: Page): HtmlReply<200> {
  const text = html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="robots" content="noindex" />
        <title>${title} · Agent Platform</title>
        <link rel="stylesheet" href="${STYLE.address}" />
        <script src="${SCRIPT.address}" defer></script>
      </head>
      <body>
        <header><a href="/dashboard">Agent Platform</a></header>
        <main>
          <h1>${title}</h1>
          ${problem && html`<p class="problem" role="alert">${problem}</p>`}
          ${notice && html`<p class="notice" role="status">${notice}</p>`}
          <noscript><p class="problem">This page needs JavaScript to send anything.</p></noscript>
          ${content}
        </main>
      </body>
    </html>`.text;
  return htmlReply(200, text, { 'Content-Security-Policy': POLICY });
}
