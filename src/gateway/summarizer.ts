import * as z from 'zod';
import { BadGatewayError, BadRequestError } from '../lib/errors.js';
import { buyerHeaders } from '../platform/http/buyer-header.js';
import { callService } from './call-service.js';
import { gatewayAction, type GatewayAction, type Json } from './gateway-action.js';

const PLUGIN = 'summarizer';

/** Base units: half a cent. */
const PRICE = 5_000n;

/** Milliseconds; the summarizer gives each page 10 s after its wait in the queue. */
const CALL_MS = 30_000;

/** More bytes than the summarizer's longest answer. */
const MAX_ANSWER_BYTES = 1024 * 1024;

const MAX_URL = 2_048;

/** Refusals of the address itself rather than of the page's content. */
const REFUSALS: readonly string[] = ['INVALID_URL', 'URL_NOT_ALLOWED'];

const refusal = z.object({ error: z.string(), code: z.string().optional() });

const texts = z.array(z.string());

const summary = z.object({
  url: z.string(),
  title: z.string(),
  description: z.string(),
  headings: texts,
  paragraphs: texts,
  wordCount: z.number(),
  fetchedAt: z.string(),
});

const extract = z.object({
  url: z.string(),
  links: z.array(z.object({ href: z.string(), text: z.string() })),
  images: z.array(z.object({ src: z.string(), alt: z.string() })),
  meta: z.record(z.string(), z.string()),
  fetchedAt: z.string(),
});

export interface SummarizerPlace {
  readonly url: string;
  /** Proves to the summarizer that the platform named the buyer; without it all buyers share one limit. */
  readonly key: string | undefined;
}

export const summarizerActions = (at: SummarizerPlace): readonly GatewayAction[] => [
  pageAction(
    at,
    'summarize',
    'The subject of a web page: title, description, headings and first paragraphs',
    summary,
  ),
  pageAction(at, 'extract', 'Links, images and metadata of a page of the web', extract),
];

const pageAction = (
  at: SummarizerPlace,
  action: 'summarize' | 'extract',
  description: string,
  answer: z.ZodType<Json>,
): GatewayAction =>
  gatewayAction({
    plugin: PLUGIN,
    action,
    description,
    price: PRICE,
    input: z.strictObject({
      url: z
        .string()
        .min(1)
        .max(MAX_URL)
        .describe('http or https; non-public addresses are refused'),
    }),
    async run({ url }, { buyer, signal }) {
      const { said, status } = await callService({
        name: 'The summarizer',
        url: `${at.url}/api/${action}`,
        ...(at.key !== undefined && { headers: buyerHeaders(at.key, buyer) }),
        body: { url },
        maxBytes: MAX_ANSWER_BYTES,
        signal: AbortSignal.any([signal, AbortSignal.timeout(CALL_MS)]),
      });
      if (status === 200) {
        const read = answer.safeParse(said);
        if (read.success) return read.data;
        throw new BadGatewayError('The summarizer sent an invalid answer');
      }
      const refused = refusal.safeParse(said);
      if (!refused.success)
        throw new BadGatewayError(`The summarizer answered with status ${status}`);
      const { code, error } = refused.data;
      const isRefused = status === 400 || REFUSALS.includes(code ?? '');
      throw isRefused ? new BadRequestError(error) : new BadGatewayError(error);
    },
  });
