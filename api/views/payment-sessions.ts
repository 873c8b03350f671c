import { z } from 'zod';
import type { PaymentSessionRow } from '../../src/database/models.js';
import { formatAmount, formattedAmount } from '../../src/money/money.js';
import { maskedId } from '../../src/payment-sessions/session-token.js';

/** A payment session (spec 2). */
export const paymentSessionItem = z.strictObject({
  id: z.string().describe('Debits it; all but its end is masked for those whose it is not'),
  userAddress: z.string(),
  deposit: formattedAmount,
  spent: formattedAmount.describe('What was delivered for it'),
  remaining: formattedAmount,
  vouchers: z.array(z.unknown()).describe('What of it is not settled on chain'),
  status: z.enum(['active', 'settling', 'closed']),
  createdAt: z.number().describe('Unix milliseconds'),
  lastSettledAt: z.number().nullable().describe('Unix milliseconds; null before the first time'),
});

/** Of one that was opened. @param token in full, where whoever asks may have it. */
export function presentPaymentSession(
  session: PaymentSessionRow,
  token: string | undefined,
): z.input<typeof paymentSessionItem> {
  const { address, createdAt, delivered, deposit, state } = session;
  return {
    id: token ?? maskedId(session),
    userAddress: address,
    deposit: formatAmount(BigInt(deposit)),
    spent: formatAmount(BigInt(delivered)),
    remaining: formatAmount(BigInt(deposit) - BigInt(delivered)),
    vouchers: [],
    status: state === 'settling' || state === 'closed' ? state : 'active',
    createdAt: createdAt.getTime(),
    lastSettledAt: null,
  };
}
