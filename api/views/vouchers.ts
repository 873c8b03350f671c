import * as z from 'zod';
import { formatAmount, formattedAmount } from '../../src/types/money.js';

export const voucherAnswer = z.strictObject({
  id: z.string(),
  sequence: z.number().int(),
  amount: formattedAmount,
  cumulative: formattedAmount.describe('Total delivered, up to and including this debit'),
  plugin: z.string(),
  action: z.string(),
  createdAt: z.number().describe('Unix milliseconds'),
});

export interface PresentedVoucher {
  readonly id: string;
  readonly sequence: number;
  /** Amounts in base units. */
  readonly amount: bigint;
  readonly cumulative: bigint;
  readonly plugin: string;
  readonly action: string;
  readonly createdAt: Date;
}

export const presentVoucher = ({
  action,
  amount,
  createdAt,
  cumulative,
  id,
  plugin,
  sequence,
}: PresentedVoucher): z.input<typeof voucherAnswer> => ({
  id,
  sequence,
  plugin,
  action,
  amount: formatAmount(amount),
  cumulative: formatAmount(cumulative),
  createdAt: createdAt.getTime(),
});
