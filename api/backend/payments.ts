import * as z from 'zod';
import { shownAddress } from '../../src/money/chain/address.js';
import { PAYMENT_FAILURES, PAYMENT_STATES } from '../../src/types/payment.js';
import {
  listPayments,
  type ListedPayment,
  type ListedTransaction,
} from '../../src/money/payments/payment-list.js';
import { operator } from '../auth/admin.js';
import { area } from '../http/area.js';
import { nextPageLink, page } from '../http/pagination.js';
import { reply } from '../http/reply.js';
import { answeredAddress } from '../views/chain-address.js';

const PATH = '/api/underground/payments';

const payments = area({ tag: 'Payments', auth: operator });

const time = z.iso.datetime();

const transaction = z
  .strictObject({
    hash: z.string(),
    nonce: z.string(),
    purpose: z.enum(['pay', 'cancel', 'fill']).describe('cancel: uses up the nonce without paying'),
    active: z
      .boolean()
      .describe('False if a newer transaction has replaced this one, which may still be mined'),
    refused: z
      .boolean()
      .describe('True if the node rejected the transaction when it was last submitted'),
    maxFee: z.string().describe('Maximum fee per unit of gas'),
    signedAt: time,
    broadcastAt: time.nullable(),
    finalAt: time.nullable(),
  })
  .meta({ id: 'Transaction' });

const payment = z
  .strictObject({
    id: z.string(),
    cause: z.string(),
    chainId: z.int(),
    signer: answeredAddress,
    state: z.enum(PAYMENT_STATES),
    failure: z.enum(PAYMENT_FAILURES).nullable(),
    nonce: z.string().nullable(),
    hash: z.string().nullable().describe('Hash of the mined transaction, else of the newest one'),
    block: z.int().nullable(),
    attempts: z.int().describe('Failed attempts to sign a transaction for the payment'),
    requestedAt: time,
    settledAt: time.nullable(),
    ageSeconds: z
      .number()
      .describe('Seconds from the request until the payment was settled, or until now'),
    transactions: z
      .array(transaction)
      .describe('All transactions signed for the payment, oldest first'),
  })
  .meta({ id: 'Payment' });

/** Creates `GET /api/underground/payments`, which lists on-chain payments and their states. */
export function paymentEndpoints() {
  return [
    payments({
      method: 'GET',
      path: PATH,
      operationId: 'listPayments',
      summary: 'List on-chain payments with their nonces and transactions, newest first',
      query: z.object({
        state: z.enum(PAYMENT_STATES).optional().describe('Only payments in this state'),
        ...page,
      }),
      responses: { 200: z.strictObject({ payments: z.array(payment) }) },
      async handler({ query, tenant }) {
        const { cursor: after, limit, state } = query;
        // One extra row shows whether there is a next page.
        const found = await listPayments(tenant, { state, after, limit: limit + 1 });
        const shown = found.slice(0, limit);
        const last = found.length > limit ? shown.at(-1) : undefined;
        return reply(
          200,
          { payments: shown.map(present) },
          nextPageLink(PATH, query, last && [last.requestedAt.toISOString(), last.id]),
        );
      },
    }),
  ];
}

const present = (row: ListedPayment): z.infer<typeof payment> => ({
  id: row.id,
  cause: row.cause,
  chainId: Number(row.chainId),
  signer: shownAddress(row.signer),
  state: row.state,
  failure: row.failure,
  nonce: row.nonce,
  hash: row.hash,
  block: row.block === null ? null : Number(row.block),
  attempts: row.attempts,
  requestedAt: row.requestedAt.toISOString(),
  settledAt: row.settledAt?.toISOString() ?? null,
  ageSeconds: Number(row.age),
  transactions: row.transactions.map(presentTransaction),
});

const presentTransaction = (row: ListedTransaction): z.infer<typeof transaction> => ({
  ...row,
  signedAt: inUtc(row.signedAt),
  broadcastAt: row.broadcastAt && inUtc(row.broadcastAt),
  finalAt: row.finalAt && inUtc(row.finalAt),
});

const inUtc = (time: string) => new Date(time).toISOString();
