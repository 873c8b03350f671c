import * as z from 'zod';
import type { PaymentSessionRow } from '../../src/platform/database/models.js';
import { formatAmount, formattedAmount } from '../../src/types/money.js';
import type { SessionDetails } from '../../src/money/sessions/session-details.js';
import { maskedId } from '../../src/money/sessions/session-token.js';
import { presentVoucher, voucherAnswer } from './vouchers.js';

/** A payment session (spec 2). */
export const paymentSessionItem = z.strictObject({
  id: z.string().describe('Debits it; all but its end is masked for those whose it is not'),
  userAddress: z.string(),
  deposit: formattedAmount,
  spent: formattedAmount.describe('What was delivered for it'),
  remaining: formattedAmount,
  vouchers: z
    .array(voucherAnswer)
    .describe('What is not settled on chain yet, oldest first: the latest 1,000'),
  status: z.enum(['active', 'settling', 'closed']),
  createdAt: z.number().describe('Unix milliseconds'),
  lastSettledAt: z.number().nullable().describe('Unix milliseconds; null before the first time'),
});

/**
 * Of one that was opened.
 *
 * @param token in full, where whoever asks may have it.
 * @param details of this session, and maybe of others.
 */
export function presentPaymentSession(
  session: PaymentSessionRow,
  token: string | undefined,
  { lastSettledAt, pending }: SessionDetails,
): z.input<typeof paymentSessionItem> {
  const { address, createdAt, delivered, deposit, state } = session;
  return {
    id: token ?? maskedId(session),
    userAddress: address,
    deposit: formatAmount(BigInt(deposit)),
    spent: formatAmount(BigInt(delivered)),
    remaining: formatAmount(BigInt(deposit) - BigInt(delivered)),
    vouchers: pending
      .filter(({ sessionId }) => sessionId === session.id)
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
