import * as z from 'zod';
import { shownAddress } from '../../src/money/chain/address.js';
import type { PaymentSessionRow } from '../../src/platform/database/models.js';
import { formatAmount, formattedAmount } from '../../src/types/money.js';
import type { SessionDetails } from '../../src/money/sessions/session-details.js';
import { maskedId } from '../../src/money/sessions/session-token.js';
import { answeredAddress } from './chain-address.js';
import { presentVoucher, voucherAnswer } from './vouchers.js';

/** A payment session (spec 2). */
export const paymentSessionItem = z
  .strictObject({
    id: z
      .string()
      .describe('Token for debits; masked except for its end unless the caller owns the session'),
    userAddress: answeredAddress,
    deposit: formattedAmount,
    spent: formattedAmount.describe('Value of delivered actions'),
    remaining: formattedAmount,
    vouchers: z
      .array(voucherAnswer)
      .describe(
        'Debits not yet settled on chain, oldest first; at most the latest 1,000. Empty unless the caller owns the session',
      ),
    status: z.enum(['active', 'settling', 'closed']),
    createdAt: z.int().describe('Unix milliseconds'),
    lastSettledAt: z
      .number()
      .nullable()
      .describe('Unix milliseconds; null before the first settlement'),
  })
  .meta({ id: 'PaymentSession' });

/**
 * Returns the view of a payment session. Its vouchers name what its owner bought, so only the owner sees them.
 * @param token in full, if the caller owns the session.
 * @param details details of this session, possibly among those of other sessions.
 */
export function presentPaymentSession(
  session: PaymentSessionRow,
  token: string | undefined,
  { lastSettledAt, pending }: SessionDetails,
): z.input<typeof paymentSessionItem> {
  const { address, createdAt, delivered, deposit, state } = session;
  return {
    id: token ?? maskedId(session),
    userAddress: shownAddress(address),
    deposit: formatAmount(BigInt(deposit)),
    spent: formatAmount(BigInt(delivered)),
    remaining: formatAmount(BigInt(deposit) - BigInt(delivered)),
    vouchers: pending
      .filter(({ sessionId }) => token !== undefined && sessionId === session.id)
      .map((voucher) =>
        presentVoucher({
          ...voucher,
          sequence: Number(voucher.sequence),
          amount: BigInt(voucher.amount),
          cumulative: BigInt(voucher.cumulative),
        }),
      ),
    status: state === 'settling' || state === 'closed' ? state : 'active',
    createdAt: createdAt.getTime(),
    lastSettledAt: lastSettledAt.get(session.id)?.getTime() ?? null,
  };
}
