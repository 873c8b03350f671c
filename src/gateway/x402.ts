import type { Logger } from 'pino';
import * as z from 'zod';
import { describeError } from '../lib/describe-error.js';
import { BadGatewayError, BadRequestError } from '../lib/errors.js';
import { keptFor } from '../lib/kept-for.js';
import { parseAmount } from '../types/money.js';
import { MAX_DEPOSIT } from '../money/sessions/terms.js';
import { askService } from './ask-service.js';
import { gatewayAction, type GatewayAction } from './gateway-action.js';

export const X402 = 'x402';

const NAME = 'The x402 gateway';

/** For its list, in milliseconds: whoever asks what is sold waits for it. */
const LIST_MS = 3_000;

/** For so many milliseconds its prices are taken as told, and it is not asked again while it is away. */
const KEEP_MS = 10_000;

const MAX_LIST_BYTES = 256 * 1024;

/** The first ones: more would be read by nobody. */
const MAX_LISTED = 200;

const MAX_ANSWER_BYTES = 1024 * 1024;

/** What else it does beside its endpoints, for agents and their owners, who are asked more for that. */
const ACTIONS = ['endpoints', 'fitness', 'join-colony', 'pay', 'pricing'];

/** What stands in an address as it is. */
const slug = z
  .string()
  .regex(/^[a-zA-Z\d][\w.-]{0,63}$/)
  .refine((name) => !ACTIONS.includes(name.toLowerCase()));

/** US dollars, with a sign or without: what a deposit can pay. */
const price = z.string().transform((text, context) => {
  const amount = parseAmount(text.replace(/^\$/, ''));
  if (amount !== undefined && amount > 0n && amount <= MAX_DEPOSIT) return amount;
  context.addIssue({ code: 'custom', message: 'is no price' });
  return z.NEVER;
});

const listed = z.object({ slug, description: z.string().max(1_000).default(''), price });

const list = z.object({ endpoints: z.array(z.unknown()) });

/** Undefined while it is not known. */
export type OfferedActions = () => Promise<readonly GatewayAction[] | undefined>;

/**
 * What an x402 gateway sells at the moment, at its prices.
 *
 * @param at its address.
 */
export const x402Actions = (at: string, log: Logger): OfferedActions =>
  keptFor(KEEP_MS, async () => {
    try {
      return await readList(at);
    } catch (error) {
      log.warn({ error: describeError(error) }, 'the x402 gateway does not say what it sells');
      return undefined;
    }
  });

/** Leaves out what cannot be sold, and what comes again under a name. */
async function readList(at: string): Promise<readonly GatewayAction[]> {
  const signal = AbortSignal.timeout(LIST_MS);
  const url = `${at}/api/endpoints`;
  const { said, status } = await askService({ name: NAME, url, maxBytes: MAX_LIST_BYTES, signal });
  const read = status === 200 ? list.safeParse(said) : undefined;
  if (!read?.success) throw new BadGatewayError(`${NAME} sent no list`);
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
    input: z.record(z.string(), z.unknown()).describe('As its seller takes it'),
    async run(body, { idempotencyKey, signal }) {
      const { said, status } = await askService({
        name: NAME,
        url: `${at}/api/${offered.slug}`,
        body,
        // Who did not hear of a run asks for the same one again.
        headers: { 'idempotency-key': idempotencyKey },
        ...{ maxBytes: MAX_ANSWER_BYTES, signal },
      });
      if (status === 400 || status === 422)
        throw new BadRequestError('The seller refuses the input');
      const read = z.json().safeParse(said);
      if (status >= 200 && status < 300 && read.success) return read.data;
      throw new BadGatewayError(`${NAME} answered with ${status}`);
    },
  });
