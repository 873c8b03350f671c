import type { IncomingMessage } from 'node:http';
import type { Logger } from 'pino';
import * as z from 'zod';
import { shownAddress } from '../../src/money/chain/address.js';
import type { ChainSettings } from '../../src/money/chain/settings.js';
import { networkName } from '../../src/money/chain/networks.js';
import { BUYER_HEADER } from '../../src/platform/http/buyer-header.js';
import { ExternalFaultError } from '../../src/lib/errors.js';
import type { RequestSeconds } from '../../src/platform/http/request-seconds.js';
import type { HttpSettings } from '../../src/platform/http/settings.js';
import type { Pages } from '../../src/pages/pages.js';
import { anonymous } from '../auth/anonymous.js';
import { bearerOf, keyMatcher } from '../auth/bearer-token.js';
import { area } from '../http/area.js';
import { createListener, type Listener, type ListenerOptions } from '../http/listener.js';
import type { RateLimit } from '../http/rate-limit.js';
import { reply } from '../http/reply.js';
import { answeredAddress } from '../views/chain-address.js';

/** Version of the answers, not of the product. */
const VERSION = '1.0';
const SERVICE = 'web-summarizer';

export interface SummarizerDependencies {
  readonly pages: Pages;
  readonly http: HttpSettings;
  readonly chain: Pick<ChainSettings, 'chainId' | 'treasury'>;
  readonly log: Logger;
  /** Metrics of requests. */
  readonly requests?: RequestSeconds | undefined;
}

/** Rate limit for reading pages, equal to the backend's general limit. */
const PAGES_LIMIT: RateLimit = {
  name: 'pages',
  max: 120,
  windowMs: 60_000,
  message: 'Too many requests, please slow down.',
};

/** Creates the listener that reads internet pages for any caller. Needs neither database nor Docker. */
export function createSummarizer(
  dependencies: SummarizerDependencies,
  options: Pick<ListenerOptions, 'bounds'> = {},
): Listener {
  return createListener({
    ...options,
    name: 'summarizer',
    title: 'Agent Platform Service: web summarizer',
    endpoints: summarizerEndpoints(dependencies),
    limits: [],
    authenticate: [],
    clientOf: buyerReader(dependencies.http.summarizerKey),
    log: dependencies.log,
    requests: dependencies.requests,
    settings: dependencies.http,
  });
}

/** Makes a reader of the buyer that the web API names. A key proves the web API; its address proves nothing. */
function buyerReader(key: string | undefined) {
  const isKey = keyMatcher(key === undefined ? [] : [key]);
  return (request: IncomingMessage): string | undefined => {
    const buyer = request.headers[BUYER_HEADER];
    if (typeof buyer !== 'string' || buyer === '') return undefined;
    return isKey(bearerOf(request) ?? '') ? `buyer ${buyer}` : undefined;
  };
}

const summarizer = area({ tag: 'Pages', auth: anonymous });
const reader = area({
  tag: 'Pages',
  auth: anonymous,
  limit: PAGES_LIMIT,
  answerHeaders: ['Content-Location'],
  errors: [503],
});

const body = z.object(
  {
    url: z
      .string({ error: 'url required' })
      .refine((url) => url.trim() !== '', { error: 'url required' })
      .describe('http or https URL of a public address; all others are rejected'),
  },
  { error: 'url required' },
);

const fetched = { url: z.string().describe('URL as requested'), fetchedAt: z.iso.datetime() };

/** Statuses of `POST /api/read` by the reason; any other reason is a 502. */
const READ_STATUSES: Readonly<Record<string, number>> = {
  INVALID_URL: 400,
  URL_NOT_ALLOWED: 403,
  TIMEOUT: 504,
};

/** Rethrows a failed read with its status. `summarize` and `extract` keep the 500 of spec 4.4. */
function withOwnStatus(error: unknown): never {
  if (!(error instanceof ExternalFaultError)) throw error;
  const { code, message } = error;
  throw new ExternalFaultError(message, code, { cause: error }, READ_STATUSES[code] ?? 502);
}

/** Creates the endpoints of spec 4.4, and `POST /api/read`. */
export function summarizerEndpoints({ chain, pages }: SummarizerDependencies) {
  return [
    summarizer({
      method: 'GET',
      path: '/',
      operationId: 'describeService',
      summary: 'Describe the service and its paid endpoints',
      responses: {
        200: z.strictObject({
          service: z.literal(SERVICE),
          description: z.string(),
          endpoints: z.record(z.string(), z.string()),
          payment: z.strictObject({
            network: z.string(),
            currency: z.string(),
            payTo: answeredAddress.nullable().describe('Payment address; null if payments are off'),
            note: z.string(),
          }),
        }),
      },
      handler: () =>
        reply(200, {
          service: SERVICE,
          description: 'Reads web pages: main content, links, images and metadata.',
          endpoints: {
            'GET /docs': 'Reference page of these endpoints',
            'GET /health': 'Report whether the service is healthy',
            'POST /api/summarize': 'Title, description, headings and first paragraphs of {url}',
            'POST /api/extract': 'Links, images and metadata of {url}',
            'POST /api/read': 'The whole main content of {url}, as text and as Markdown',
          },
          payment: {
            network: networkName(chain.chainId),
            currency: 'pathUSD',
            payTo: chain.treasury === undefined ? null : shownAddress(chain.treasury),
            note: 'Free of charge here, within limits. Paid for by a payment session: POST /api/v1/gateway.',
          },
        }),
    }),
    summarizer({
      method: 'GET',
      path: '/health',
      operationId: 'getHealth',
      summary: 'Report whether the service is healthy',
      responses: {
        200: z.strictObject({
          status: z.literal('ok'),
          service: z.literal(SERVICE),
          version: z.string(),
        }),
      },
      handler: () => reply(200, { status: 'ok', service: SERVICE, version: VERSION }),
    }),
    reader({
      method: 'POST',
      path: '/api/summarize',
      operationId: 'summarizePage',
      summary: 'Summarize a page: title, description, headings and first paragraphs',
      body,
      responses: {
        200: z.strictObject({
          ...fetched,
          title: z.string(),
          description: z.string(),
          headings: z.array(z.string()).max(20).describe('h1 to h3'),
          paragraphs: z.array(z.string()).max(10).describe('Paragraphs of the main content'),
          wordCount: z.int().describe('Words on the whole page'),
        }),
      },
      async handler({ body: { url }, clientAddress: client, signal }) {
        const { fetchedAt, finalUrl, value } = await pages.read('summarize', url, {
          client,
          signal,
        });
        return reply(200, { url, ...value, fetchedAt }, { 'Content-Location': finalUrl });
      },
    }),
    reader({
      method: 'POST',
      path: '/api/extract',
      operationId: 'extractPage',
      summary: 'List the links, images and metadata of a page',
      body,
      responses: {
        200: z.strictObject({
          ...fetched,
          links: z.array(z.strictObject({ href: z.string(), text: z.string().max(100) })).max(50),
          images: z.array(z.strictObject({ src: z.string(), alt: z.string().max(100) })).max(20),
          meta: z
            .record(z.string(), z.string())
            .describe('`og:*`, `twitter:*` and `description`; names in lower case'),
        }),
      },
      async handler({ body: { url }, clientAddress: client, signal }) {
        const { fetchedAt, finalUrl, value } = await pages.read('extract', url, { client, signal });
        return reply(200, { url, ...value, fetchedAt }, { 'Content-Location': finalUrl });
      },
    }),
    reader({
      method: 'POST',
      path: '/api/read',
      operationId: 'readPage',
      summary: 'Read the full main content of a page',
      body: body.strict(),
      responses: {
        200: z.strictObject({
          ...fetched,
          finalUrl: z.string().describe('URL after all redirects'),
          title: z.string(),
          byline: z.string().nullable(),
          published: z.string().nullable().describe('Publication date as stated by the page'),
          language: z.string().nullable(),
          siteName: z.string().nullable(),
          description: z.string(),
          wordCount: z.int().describe('Words in the main content'),
          text: z.string(),
          markdown: z.string(),
        }),
      },
      errors: [403, 502, 504],
      async handler({ body: { url }, clientAddress: client, signal }) {
        const { fetchedAt, finalUrl, value } = await pages
          .read('read', url, { client, signal })
          .catch(withOwnStatus);
        return reply(200, { url, finalUrl, ...value, fetchedAt }, { 'Content-Location': finalUrl });
      },
    }),
  ];
}
