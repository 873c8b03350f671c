import * as z from 'zod';
import { BadRequestError, NotFoundError } from '../../src/lib/errors.js';
import { fieldMessage } from '../../src/lib/field-name.js';
import { amountText, formatAmount, formattedAmount } from '../../src/types/money.js';
import { findPaymentSession } from '../../src/money/sessions/find-session.js';
import { detailsOf, pendingVouchers } from '../../src/money/sessions/session-details.js';
import { MAX_DEPOSIT, MIN_DEPOSIT } from '../../src/money/sessions/terms.js';
import { optionalPerson } from '../auth/person.js';
import { networksOf, requestOwner } from '../../src/platform/http/client-networks.js';
import { optionalSession } from '../auth/optional-session.js';
import { area } from '../http/area.js';
import { nextPageLink, pageQuery } from '../http/pagination.js';
import { reply } from '../http/reply.js';
import { chainAddress, addressToFind } from '../views/chain-address.js';
import { hexText } from '../views/hex-text.js';
import { paymentSessionItem, presentPaymentSession } from '../views/payment-sessions.js';
import type { WebDependencies } from './dependencies.js';
import { LIMITS } from './limits.js';

const SESSIONS = '/api/wallet/sessions';

const paymentSessions = area({ tag: 'Payment sessions', auth: optionalSession });

const sessionId = z
  .string()
  .min(1, { error: 'sessionId required' })
  .describe('The id of the session');

/** The sequence of the last voucher of a page. */
const { cursor } = pageQuery(z.tuple([z.string().regex(/^\d{1,18}$/)]));

/** The maximum of an unsigned 64-bit number. */
const MAX_DEADLINE = 2n ** 64n - 1n;

const NOTE = 'The wallet already has this session; a new one can be opened once it is closed';
const MASKED_NOTE = `${NOTE}. Its id is shown for an authorization with a nonce that was never used`;

const authorization = z.object({
  nonce: hexText(/^0x[\da-fA-F]{64}$/, 'must be 0x and 64 hex digits'),
  deadline: z
    .union([z.number().int().nonnegative(), z.string().regex(/^\d{1,20}$/)])
    .transform((value) => BigInt(value))
    .refine((value) => value <= MAX_DEADLINE, fieldMessage('must be a time'))
    .describe('Unix seconds, at most one hour ahead'),
  signature: hexText(/^0x(?:[\da-fA-F]{2}){1,4096}$/, 'must be hex').describe(
    "EIP-712 signature by the wallet's key or by ERC-1271",
  ),
});

/** A header is in no address, and so in no log of a proxy. */
const sessionHeader = z.object({
  'x-session-id': sessionId.optional().describe('The id of the session, in place of `sessionId`'),
});

/** Returns the session's id from the query or the header. @throws BadRequestError if they differ. */
function tokenOf(
  { sessionId }: { readonly sessionId?: string | undefined },
  { 'x-session-id': inHeader }: z.infer<typeof sessionHeader>,
): string | undefined {
  if (sessionId !== undefined && inHeader !== undefined && sessionId !== inHeader) {
    throw new BadRequestError('sessionId and X-Session-Id differ: provide one of them');
  }
  return sessionId ?? inHeader;
}

const closedSession = z
  .strictObject({
    session: paymentSessionItem,
    settled: formattedAmount.describe('Part of the deposit that the treasury has received'),
    refunded: formattedAmount.describe(
      'Part of the deposit returned to the wallet; 0 before the session is closed',
    ),
    transactions: z.array(z.string()).describe('Hashes of the settling transactions, oldest first'),
  })
  .meta({ id: 'ClosedPaymentSession' });

/** Creates the endpoints for payment sessions: deposits that wallets hold for purchases (spec 4.9). */
export function paymentSessionEndpoints({
  database,
  paymentSessions: sessions,
}: Pick<WebDependencies, 'database' | 'paymentSessions'>) {
  const details = (found: readonly { readonly id: string }[]) =>
    detailsOf(database.asPlatform(), found);
  /** The id authorizes: its holder may do anything that the session's wallet may. */
  const find = async (token: string) => {
    const session = await findPaymentSession(database, { token });
    if (!session || session.openedAt === null) throw new NotFoundError('Session not found');
    return session;
  };
  return [
    paymentSessions({
      method: 'POST',
      path: SESSIONS,
      auth: optionalPerson,
      keyScope: 'money',
      operationId: 'openPaymentSession',
      summary:
        "Open a payment session by a hold on the wallet's escrow balance, or return its open session",
      limit: LIMITS.paymentSessions,
      body: z.object({
        address: chainAddress,
        deposit: amountText
          .refine((units) => units >= MIN_DEPOSIT && units <= MAX_DEPOSIT, {
            error: 'deposit must be from 1.00 to 100.00',
          })
          .describe('Deposit in pathUSD, from 1.00 to 100.00'),
        authorization: authorization
          .optional()
          .describe('Not needed for a wallet of the signed-in user whose key the platform holds'),
      }),
      responses: {
        200: z.strictObject({ session: paymentSessionItem, note: z.string() }),
        201: z.strictObject({ session: paymentSessionItem }),
      },
      errors: [401, 402, 503],
      async handler({ body, caller, clientAddress, requestId, signal }) {
        const userId = caller.kind === 'anonymous' ? undefined : caller.user.id;
        const opened = await sessions.open(
          {
            userId,
            requestId,
            owner: requestOwner(userId, clientAddress),
            client: networksOf(clientAddress).site,
          },
          body,
          signal,
        );
        const { isNew, token } = opened;
        const session = presentPaymentSession(
          opened.session,
          token,
          await details([opened.session]),
        );
        if (isNew) return reply(201, { session });
        const note = token === undefined ? MASKED_NOTE : NOTE;
        return reply(200, { session, note });
      },
    }),
    paymentSessions({
      method: 'GET',
      path: SESSIONS,
      auth: optionalPerson,
      keyScope: 'any',
      operationId: 'listPaymentSessions',
      summary: "List a wallet's last 50 payment sessions, or get the session of an id",
      limit: LIMITS.wallets,
      query: z.object({
        address: addressToFind.optional().describe('The wallet whose sessions to list'),
        sessionId: sessionId.optional(),
        vouchers: z
          .literal('all')
          .optional()
          .describe('Pages through all vouchers of the session, oldest first, 1,000 each'),
        cursor,
      }),
      headers: sessionHeader,
      responses: {
        200: z.union([
          z.strictObject({ sessions: z.array(paymentSessionItem) }),
          z.strictObject({ session: paymentSessionItem }),
        ]),
      },
      errors: [404],
      async handler({ caller, headers, query }) {
        const { address, cursor: after, vouchers } = query;
        const token = tokenOf(query, headers);
        if ((address === undefined) === (token === undefined)) {
          throw new BadRequestError('Provide either address or sessionId');
        }
        if (vouchers !== undefined && token === undefined) {
          throw new BadRequestError('vouchers needs sessionId');
        }
        if (after !== undefined && vouchers === undefined) {
          throw new BadRequestError('cursor needs vouchers=all');
        }
        if (address !== undefined) {
          // The id of a session spends its deposit.
          const mayPay = caller.kind !== 'api-key' || caller.scopes.includes('money');
          const userId = caller.kind === 'anonymous' || !mayPay ? undefined : caller.user.id;
          const isOwner = await sessions.isOwner(userId, address);
          const found = await sessions.list(address);
          const all = await details(found);
          const items = found.map((each) =>
            presentPaymentSession(each, isOwner ? sessions.tokenOf(each) : undefined, all),
          );
          return reply(200, { sessions: items });
        }
        const session = await find(token ?? '');
        const found = await details([session]);
        if (vouchers === undefined) {
          return reply(200, { session: presentPaymentSession(session, token, found) });
        }
        const { items, next } = await pendingVouchers(database.asPlatform(), session, after?.[0]);
        return reply(
          200,
          { session: presentPaymentSession(session, token, { ...found, pending: items }) },
          nextPageLink(SESSIONS, query, next === undefined ? undefined : [next]),
        );
      },
    }),
    paymentSessions({
      method: 'DELETE',
      path: SESSIONS,
      operationId: 'closePaymentSession',
      summary: 'Close a payment session: delivered actions are settled, and the rest is refunded',
      limit: LIMITS.wallets,
      query: z.object({ sessionId: sessionId.optional() }),
      headers: sessionHeader,
      responses: { 200: closedSession, 202: closedSession },
      errors: [404],
      async handler({ headers, query, signal }) {
        const token = tokenOf(query, headers);
        if (token === undefined) throw new BadRequestError('sessionId required');
        const { session, transactions } = await sessions.close(await find(token), signal);
        const { deposit, settled, state } = session;
        const isClosed = state === 'closed';
        const body = {
          session: presentPaymentSession(session, token, await details([session])),
          settled: formatAmount(BigInt(settled)),
          refunded: formatAmount(isClosed ? BigInt(deposit) - BigInt(settled) : 0n),
          transactions: [...transactions],
        };
        return isClosed ? reply(200, body) : reply(202, body);
      },
    }),
  ];
}
