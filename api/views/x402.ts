import * as z from 'zod';
import { colonyEndpoints, colonyFitness, colonyPricing } from '../../src/gateway/x402-gateway.js';
import type { X402Payment } from '../../src/gateway/x402-payments.js';
import { BadRequestError } from '../../src/lib/errors.js';
import { parseRounded } from '../../src/types/money.js';
import type { ErrorForm } from '../http/endpoint.js';
import { sentAs } from '../http/json-schema.js';

/** The actions that need a session. */
const ACTIONS = ['join-colony', 'fitness', 'pricing', 'pay'] as const;

const ANY_ACTION = 'Invalid action. Use: join-colony, fitness, pricing, endpoints, or pay';

/** Spec 8. */
const MAX_AMOUNT = 100;

const MAX_TEXT_LENGTH = 255;

const EVM_ADDRESS = /^0x[\da-fA-F]{40}$/;

/** Base58, without the letters and digits that look alike. */
const SOLANA_ADDRESS = /^[1-9A-HJ-NP-Za-km-z]{32,44}$/;

/** Errors with the `success` that clients of x402 expect. */
export const X402_ERRORS: ErrorForm = {
  name: 'X402Error',
  schema: z
    .looseObject({ success: z.literal(false), error: z.string(), code: z.string().optional() })
    .meta({ id: 'X402Error' }),
  of: ({ body }) => ({ success: false, ...body }),
};

/** A field that is checked after authentication, in the order of the contract. */
const later = (type: 'string' | 'number', description: string) =>
  z.unknown().optional().describe(description).register(sentAs, { type });

/** The body of `POST /api/x402`. */
export const x402Request = z
  .object({
    action: later('string', 'One of join-colony, fitness, pricing, endpoints, pay'),
    agentId: later('string', 'Required for all actions but `endpoints`'),
    walletAddress: later('string', '`join-colony`: required'),
    amount: later('number', '`pay`: required, above 0 and at most 100'),
    currency: later('string', '`pay`: passed on, `USDC` by default'),
    recipient: later('string', '`pay`: required, an EVM or Solana address'),
    endpoint: later('string', '`pay`: the slug of the endpoint that is paid for'),
    method: later('string', '`pay`: passed on, `default` by default'),
  })
  .meta({ id: 'X402Request' });

/** The fields of a valid request. */
export type X402Order =
  | { readonly action: 'fitness' | 'pricing'; readonly agentId: string }
  | { readonly action: 'join-colony'; readonly agentId: string; readonly walletAddress: string }
  | { readonly action: 'pay'; readonly agentId: string; readonly payment: X402Payment };

export const x402Answer = z.union([
  colonyEndpoints,
  colonyFitness,
  colonyPricing,
  z.looseObject({}).describe('`join-colony` and `pay`: the answer of the gateway'),
]);

/** Reads the fields of a signed-in caller's request, in the order of the contract. @throws BadRequestError */
export function readX402Order(body: z.output<typeof x402Request>): X402Order {
  const action = ACTIONS.find((each) => each === body.action);
  if (action === undefined) throw new BadRequestError(ANY_ACTION);
  const agentId = requiredText(body.agentId, 'agentId', 'agentId required');
  switch (action) {
    case 'fitness':
    case 'pricing':
      return { action, agentId };
    case 'join-colony': {
      const missing = 'walletAddress required';
      return {
        action,
        agentId,
        walletAddress: requiredText(body.walletAddress, 'walletAddress', missing),
      };
    }
    case 'pay':
      return { action, agentId, payment: { agentId, ...paymentIn(body) } };
  }
}

function paymentIn(body: z.output<typeof x402Request>) {
  const amount = amountIn(body.amount);
  const recipient = requiredText(body.recipient, 'recipient', 'Recipient required');
  if (!EVM_ADDRESS.test(recipient) && !SOLANA_ADDRESS.test(recipient)) {
    throw new BadRequestError('Invalid recipient address');
  }
  return {
    amount,
    recipient,
    currency: optionalText(body.currency, 'currency') ?? 'USDC',
    endpoint: optionalText(body.endpoint, 'endpoint'),
    method: optionalText(body.method, 'method') ?? 'default',
  };
}

/** Reads an amount, rounded half up to base units. @throws BadRequestError */
function amountIn(amount: unknown): bigint {
  if (typeof amount !== 'number' || !(amount > 0)) throw new BadRequestError('Invalid amount');
  if (amount > MAX_AMOUNT) {
    throw new BadRequestError('Amount exceeds $100 limit. Contact support for higher limits.');
  }
  const units = unitsOf(amount);
  if (units === 0n) throw new BadRequestError('Invalid amount');
  return units;
}

/** Below a base unit the text of a number has an exponent. */
const unitsOf = (amount: number): bigint =>
  amount < 1e-6 ? BigInt(amount >= 5e-7) : (parseRounded(String(amount)) ?? 0n);

function requiredText(value: unknown, name: string, missing: string): string {
  if (typeof value !== 'string' || value.trim() === '') throw new BadRequestError(missing);
  return shortText(value, name);
}

function optionalText(value: unknown, name: string): string | undefined {
  if (value === undefined || value === '') return undefined;
  if (typeof value !== 'string') throw new BadRequestError(`${name} must be text`);
  return shortText(value, name);
}

function shortText(value: string, name: string): string {
  if (value.length <= MAX_TEXT_LENGTH) return value;
  throw new BadRequestError(`${name} must be at most ${MAX_TEXT_LENGTH} characters`);
}
