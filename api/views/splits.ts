import type { Hex } from 'viem';
import * as z from 'zod';
import { fieldMessage } from '../../src/lib/field-name.js';
import {
  WHOLE_SHARE,
  formatAmount,
  formattedAmount,
  roundedAmountText,
} from '../../src/types/money.js';
import { shownAddress } from '../../src/money/chain/address.js';
import type { QueuedSplit, SplitWithPayouts } from '../../src/money/splits/royalty-splits.js';
import { parsePercentage, percentageOf } from '../../src/money/splits/percentages.js';
import { PAYOUT_STATUSES, SPLIT_STATUSES } from '../../src/types/split-states.js';
import { visibleName } from '../../src/lib/visible-name.js';
import { pageQuery } from '../http/pagination.js';
import { answeredAddress, chainAddress } from './chain-address.js';

export const MAX_RECIPIENTS = 100;

const NOBODY = `0x${'0'.repeat(40)}`;

const share = z
  .number()
  // The sum is only checked if each share is valid.
  .min(0, { abort: true })
  .max(100, { abort: true })
  .describe('Percentage with at most four decimals')
  .transform(parsePercentage)
  .pipe(z.bigint(fieldMessage('must have at most four decimals')));

const recipients = z
  .array(
    z.object({
      address: chainAddress.refine(
        (address: Hex) => address !== NOBODY,
        fieldMessage('is an address without an owner'),
      ),
      share,
    }),
  )
  .min(1)
  .max(MAX_RECIPIENTS)
  .describe('Recipients whose shares add up to exactly 100')
  .refine((all) => new Set(all.map(({ address }) => address)).size === all.length, {
    error: 'recipients must be different addresses',
  })
  .refine((all) => all.reduce((sum, { share }) => sum + share, 0n) === WHOLE_SHARE, {
    error: 'shares must add up to exactly 100',
  });

/** Name, amount and recipients of a split, to be spread into a body. */
export const splitName = visibleName(128);

export const splitParts = {
  totalAmount: roundedAmountText
    .refine((units: bigint) => units > 0n, { error: 'totalAmount must be more than zero' })
    .describe('USDC, rounded to six decimals'),
  recipients,
};

export const splitIdParams = z.object({
  id: z
    .string()
    .regex(/^[1-9]\d{0,14}$/, { error: 'id must be the number of a split' })
    .describe('The split'),
});

/** Smaller pages than elsewhere: each split has up to 100 payouts. */
export const splitPage = pageQuery(z.tuple([splitIdParams.shape.id]), 50);

export const splitQueued = z
  .strictObject({
    success: z.literal(true),
    splitId: z.int(),
    status: z.enum(SPLIT_STATUSES).describe('`queued`; for a repeated request, the current status'),
  })
  .meta({ id: 'QueuedSplit' });

export const splitItem = z
  .strictObject({
    splitId: z.int(),
    name: z.string(),
    status: z.enum(SPLIT_STATUSES),
    totalAmount: formattedAmount,
    fromAddress: answeredAddress,
    createdAt: z.iso.datetime(),
    completedAt: z.iso
      .datetime()
      .nullable()
      .describe('Time at which the last payout left the in-flight state'),
    error: z.string().optional().describe('Why some payouts failed'),
    payouts: z.array(
      z.strictObject({
        address: answeredAddress,
        share: z.number().describe('A percentage'),
        amount: formattedAmount,
        status: z
          .enum(PAYOUT_STATUSES)
          .describe('From `sent` on, the payout may have been paid; a payout of 0 is `skipped`'),
        transaction: z.string().nullable(),
      }),
    ),
  })
  .meta({ id: 'Split' });

export const presentQueued = ({ id, status }: QueuedSplit) =>
  ({ success: true, splitId: Number(id), status }) as const;

export function presentSplit({ split, payouts }: SplitWithPayouts): z.input<typeof splitItem> {
  return {
    splitId: Number(split.id),
    name: split.name,
    status: split.status,
    totalAmount: formatAmount(BigInt(split.totalAmount)),
    fromAddress: shownAddress(split.fromAddress),
    createdAt: split.createdAt.toISOString(),
    completedAt: split.completedAt?.toISOString() ?? null,
    ...(split.error !== null && { error: split.error }),
    payouts: payouts.map(({ address, share, amount, status, transaction }) => ({
      address: shownAddress(address),
      share: percentageOf(share),
      amount: formatAmount(BigInt(amount)),
      status,
      transaction,
    })),
  };
}
