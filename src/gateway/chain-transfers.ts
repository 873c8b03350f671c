import type { Hex } from 'viem';
import * as z from 'zod';
import { shownAddress } from '../money/chain/address.js';
import type { ChainFor } from '../money/chain/chain-node.js';
import { PATH_USD } from '../money/chain/tempo.js';
import { transfersOf } from '../money/chain/transfers.js';
import { BadRequestError } from '../lib/errors.js';
import { fieldMessage } from '../lib/field-name.js';
import { formatAmount } from '../types/money.js';
import { gatewayAction } from './gateway-action.js';

/** @param chain is read on behalf of the buyer, so that buyers share it fairly. */
export const chainTransfers = (chain: ChainFor<'receipt'>) =>
  gatewayAction({
    plugin: 'chain',
    action: 'transfers',
    description:
      'The transfers of a transaction on the payment chain, for every token and including fees',
    price: 1_000n,
    input: z.strictObject({
      hash: z
        .string()
        .regex(/^0x[\da-fA-F]{64}$/, fieldMessage('must be 0x and 64 hex digits'))
        .describe("The transaction's"),
    }),
    async run({ hash }, { buyer }) {
      const queries = chain.onBehalfOf({ owner: buyer, isUrgent: true });
      // The schema has checked the hash's form.
      const receipt = await queries.receipt(hash.toLowerCase() as Hex);
      if (!receipt)
        throw new BadRequestError(
          'Transaction not found: it is in no block yet, or does not exist',
        );
      return {
        hash: receipt.hash,
        succeeded: receipt.succeeded,
        blockNumber: receipt.blockNumber,
        transfers: transfersOf(receipt).map(({ token, from, to, amount, isFee }) => ({
          token: shownAddress(token),
          from: shownAddress(from),
          to: shownAddress(to),
          isFee,
          amountRaw: String(amount),
          // The decimals of other tokens are defined by their contracts, so their amounts stay unformatted.
          amount: token === PATH_USD ? formatAmount(amount) : null,
        })),
      };
    },
  });
