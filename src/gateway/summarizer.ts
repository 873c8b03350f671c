import * as z from 'zod';
import { BadGatewayError, BadRequestError } from '../lib/errors.js';
import { askService } from './ask-service.js';
import { gatewayAction, type GatewayAction, type Json } from './gateway-action.js';

const PLUGIN = 'summarizer';

/** Base units: half a cent. */
const PRICE = 5_000n;

/** For a page and its reading, in milliseconds: the summarizer gives a page 10 s, once it is its turn. */
const CALL_MS = 30_000;

/** More than the longest answer of what it is asked for. */
const MAX_ANSWER_BYTES = 1024 * 1024;

const MAX_URL = 2_048;

/** What it has against the address itself, and not against what is there. */
const REFUSALS: readonly string[] = ['INVALID_URL', 'URL_NOT_ALLOWED'];

const refusal = z.object({ error: z.string(), code: z.string().optional() });

const texts = z.array(z.string());

const summary = z.object({
  ...{ url: z.string(), title: z.string(), description: z.string() },
  ...{ headings: texts, paragraphs: texts, wordCount: z.number(), fetchedAt: z.string() },
});

const extract = z.object({
  url: z.string(),
  links: z.array(z.object({ href: z.string(), text: z.string() })),
  images: z.array(z.object({ src: z.string(), alt: z.string() })),
  ...{ meta: z.record(z.string(), z.string()), fetchedAt: z.string() },
});

/** `summarizer` `summarize` and `extract`, of the service at an address. */
export const summarizerActions = (at: string): readonly GatewayAction[] => [
  pageAction(
    at,
    'summarize',
    'What a page of the web is about: title, description, headings and first paragraphs',
    summary,
  ),
  pageAction(at, 'extract', 'Links, images and metadata of a page of the web', extract),
];

const pageAction = (
  at: string,
  action: 'summarize' | 'extract',
  description: string,
  answer: z.ZodType<Json>,
): GatewayAction =>
  gatewayAction({
    ...{ plugin: PLUGIN, action, description, price: PRICE },
    input: z.strictObject({
      url: z
        .string()
        .min(1)
        .max(MAX_URL)
        .describe('http or https; other addresses than public ones are refused'),
    }),
    async run({ url }, { signal }) {
      const { said, status } = await askService({
        name: 'The summarizer',
        url: `${at}/api/${action}`,
        body: { url },
        maxBytes: MAX_ANSWER_BYTES,
        signal: AbortSignal.any([signal, AbortSignal.timeout(CALL_MS)]),
      });
      if (status === 200) {
        const read = answer.safeParse(said);
        if (read.success) return read.data;
        throw new BadGatewayError('The summarizer sent what is no answer');
      }
      const refused = refusal.safeParse(said);
      if (!refused.success) throw new BadGatewayError(`The summarizer answered with ${status}`);
      const { code, error } = refused.data;
      const isRefused = status === 400 || REFUSALS.includes(code ?? '');
      throw isRefused ? new BadRequestError(error) : new BadGatewayError(error);
    },
  });
