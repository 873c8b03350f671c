import type { Logger } from 'pino';
import * as z from 'zod';
import { describeError } from '../lib/describe-error.js';
import { BadGatewayError, BadRequestError } from '../lib/errors.js';
import { cachedFor } from '../lib/cached-for.js';
import { parseAmount } from '../types/money.js';
import { MAX_DEPOSIT } from '../money/sessions/terms.js';
import { callService } from './call-service.js';
import { gatewayAction, type GatewayAction } from './gateway-action.js';

export const X402 = 'x402';

const NAME = 'The x402 gateway';

/** Milliseconds for the list of endpoints; every request for the catalogue waits for that list. */
const LIST_MS = 3_000;

/** Milliseconds for which prices are cached. After a failure the gateway gets no request for as long. */
const KEEP_MS = 10_000;

const MAX_LIST_BYTES = 256 * 1024;

const MAX_LISTED = 200;

const MAX_ANSWER_BYTES = 1024 * 1024;

/** Paths of the gateway's other functions: an endpoint with such a name could not be called. */
const ACTIONS = ['endpoints', 'fitness', 'join-colony', 'pay', 'pricing'];

/** A name that needs no escaping in a URL. */
const slug = z
  .string()
  .regex(/^[a-zA-Z\d][\w.-]{0,63}$/)
  .refine((name) => !ACTIONS.includes(name.toLowerCase()));

/** US dollars, with or without a dollar sign, at most the largest deposit. */
const price = z.string().transform((text, context) => {
  const amount = parseAmount(text.replace(/^\$/, ''));
  if (amount !== undefined && amount > 0n && amount <= MAX_DEPOSIT) return amount;
  context.addIssue({ code: 'custom', message: 'is not a valid price' });
  return z.NEVER;
});

const listed = z.object({ slug, description: z.string().max(1_000).default(''), price });

const list = z.object({ endpoints: z.array(z.unknown()) });

/** Undefined while the list is unavailable. */
export type OfferedActions = () => Promise<readonly GatewayAction[] | undefined>;

/** Makes a cached list of the actions that the x402 gateway at this address sells now, with its prices. */
export const x402Actions = (at: string, log: Logger): OfferedActions =>
  cachedFor(KEEP_MS, async () => {
    try {
      return await readList(at);
    } catch (error) {
      log.warn({ error: describeError(error) }, "listing the x402 gateway's endpoints failed");
      return undefined;
    }
  });

/** Reads the gateway's endpoints, without invalid entries and repeated names. */
async function readList(at: string): Promise<readonly GatewayAction[]> {
  const signal = AbortSignal.timeout(LIST_MS);
  const url = `${at}/api/endpoints`;
  const { said, status } = await callService({ name: NAME, url, maxBytes: MAX_LIST_BYTES, signal });
  const read = status === 200 ? list.safeParse(said) : undefined;
  if (!read?.success) throw new BadGatewayError(`${NAME} sent no valid list of endpoints`);
  const actions = new Map<string, GatewayAction>();
  for (const each of read.data.endpoints.slice(0, MAX_LISTED)) {
    const { data } = listed.safeParse(each);
    if (data && !actions.has(data.slug)) actions.set(data.slug, endpointAction(at, data));
  }
  return [...actions.values()];
}

const endpointAction = (at: string, offered: z.output<typeof listed>): GatewayAction =>
  gatewayAction({
    plugin: X402,
    action: offered.slug,
    description: offered.description,
    price: offered.price,
    isPricedByOthers: true,
    input: z.record(z.string(), z.unknown()).describe("The seller's input, passed on unchanged"),
    async run(body, { idempotencyKey, signal }) {
      const { said, status } = await callService({
        name: NAME,
        url: `${at}/api/${offered.slug}`,
        body,
        // The key makes a retried run idempotent for the seller.
        headers: { 'idempotency-key': idempotencyKey },
        maxBytes: MAX_ANSWER_BYTES,
        signal,
      });
      if (status === 400 || status === 422)
        throw new BadRequestError('The seller refused the input');
      const read = z.json().safeParse(said);
      if (status >= 200 && status < 300 && read.success) return read.data;
      throw new BadGatewayError(`${NAME} answered with status ${status}`);
    },
  });
