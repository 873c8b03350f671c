import * as z from 'zod';
import type { Voucher } from '../../src/gateway/debits.js';
import type { GatewayAction } from '../../src/gateway/gateway-action.js';
import { formatAmount, formattedAmount } from '../../src/types/money.js';

export const voucherAnswer = z
  .strictObject({
    id: z.string(),
    sequence: z.number().int(),
    amount: formattedAmount,
    cumulative: formattedAmount.describe('Total delivered, up to and including this debit'),
    plugin: z.string(),
    action: z.string(),
    createdAt: z.int().describe('Unix milliseconds'),
  })
  .meta({ id: 'Voucher' });

export const presentVoucher = ({
  action,
  amount,
  createdAt,
  cumulative,
  id,
  plugin,
  sequence,
}: Voucher & Pick<GatewayAction, 'plugin' | 'action'>): z.input<typeof voucherAnswer> => ({
  id,
  sequence,
  plugin,
  action,
  amount: formatAmount(amount),
  cumulative: formatAmount(cumulative),
  createdAt: createdAt.getTime(),
});
