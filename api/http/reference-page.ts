import { createReadStream } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import type { Readable } from 'node:stream';
import * as z from 'zod';
import { anonymous } from '../auth/anonymous.js';
import { endpoint, type Endpoint } from './endpoint.js';
import { html } from '../../src/lib/html.js';
import { fileReply, htmlReply, reply } from './reply.js';

/** Content security policy of the page: only its own scripts and styles. */
const PAGE_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join('; ');

const PAGE_HEADERS = { 'Content-Security-Policy': PAGE_POLICY, 'Cache-Control': 'max-age=3600' };

const ASSETS = { 'swagger-ui.css': 'text/css', 'swagger-ui-bundle.js': 'text/javascript' } as const;

const START = Buffer.from(
  `SwaggerUIBundle({ url: '/openapi.json', dom_id: '#reference', deepLinking: true });\n`,
);

/** Creates `/openapi.json` and the page `/docs` that shows it. Neither is part of the document. */
export function referencePages(
  document: () => Readonly<Record<string, unknown>>,
  title: string,
): Endpoint[] {
  let made: Readonly<Record<string, unknown>> | undefined;
  const openapi = endpoint({
    ...page('/openapi.json', 'The OpenAPI document'),
    responses: { 200: z.record(z.string(), z.unknown()) },
    handler: () => reply(200, (made ??= document())),
  });
  const folder = path.dirname(
    createRequire(import.meta.url).resolve('swagger-ui-dist/package.json'),
  );
  const assets = Object.entries(ASSETS).map(([file, type]) =>
    asset(`/docs/${file}`, type, () => createReadStream(path.join(folder, file))),
  );
  const docs = endpoint({
    ...page('/docs', 'The reference page'),
    responses: { 200: 'html' },
    handler: () => htmlReply(200, reference(title).text, PAGE_HEADERS),
  });
  return [openapi, docs, asset('/docs/start.js', 'text/javascript', () => START), ...assets];
}

function page(route: string, summary: string) {
  return { method: 'GET', path: route, summary, tag: 'reference', auth: anonymous } as const;
}

function asset(route: string, type: string, open: () => Readable | Buffer): Endpoint {
  return endpoint({
    ...page(route, 'Part of the reference page'),
    responses: { 200: 'file' },
    handler: () =>
      fileReply(200, { content: open(), contentType: `${type}; charset=utf-8` }, PAGE_HEADERS),
  });
}

function reference(title: string) {
  return html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <title>${title}</title>
        <link rel="icon" href="data:," />
        <link rel="stylesheet" href="/docs/swagger-ui.css" />
      </head>
      <body>
        <div id="reference"></div>
        <script src="/docs/swagger-ui-bundle.js"></script>
        <script src="/docs/start.js"></script>
      </body>
    </html> `;
}
