import type { Hex } from 'viem';
import * as z from 'zod';
import type { ChainNode } from '../money/chain/chain-node.js';
import { PATH_USD } from '../money/chain/tempo.js';
import { transfersOf } from '../money/chain/transfers.js';
import { BadRequestError } from '../lib/errors.js';
import { ofField } from '../lib/field-name.js';
import { formatAmount } from '../types/money.js';
import { gatewayAction } from './gateway-action.js';

/** `chain` `transfers`: from receipt logs alone, as payments are looked at. */
export const chainTransfers = (chain: Pick<ChainNode, 'receipt'>) =>
  gatewayAction({
    plugin: 'chain',
    action: 'transfers',
    description: 'What a transaction of the payment chain has moved, of any token, fees included',
    price: 1_000n,
    input: z.strictObject({
      hash: z
        .string()
        .regex(/^0x[\da-fA-F]{64}$/, ofField('must be 0x and 64 hex digits'))
        .describe("The transaction's"),
    }),
    async run({ hash }) {
      // Its form was looked at.
      const receipt = await chain.receipt(hash.toLowerCase() as Hex);
      if (!receipt) throw new BadRequestError('There is no such transaction in a block');
      return {
        hash: receipt.hash,
        succeeded: receipt.succeeded,
        blockNumber: receipt.blockNumber,
        transfers: transfersOf(receipt).map(({ token, from, to, amount, isFee }) => ({
          ...{ token, from, to, isFee },
          amountRaw: String(amount),
          // What decimals other contracts mean is theirs to say.
          amount: token === PATH_USD ? formatAmount(amount) : null,
        })),
      };
    },
  });
