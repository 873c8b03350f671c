import { decodeFunctionData, type Hex } from 'viem';
import type { Database } from '../../platform/database/database.js';
import { escrowAbi } from '../chain/payment-escrow.js';
import type { CheckOf } from '../payments/signer.js';
import { isOpening } from './causes.js';
import { failuresLimit } from './failed-openings.js';
import { HoldSignature } from './hold-authorization.js';

/**
 * Checks openings as of the block of their simulation: since the request the wallet may have got code,
 * which then verifies the signature instead of the key (EIP-7702).
 */
export const openingCheck =
  (database: Database): CheckOf =>
  ({ calls: [call], cause }) => {
    if (!call || !isOpening(cause)) return undefined;
    const { args, functionName } = decodeFunctionData({ abi: escrowAbi, data: call.data });
    if (functionName !== 'open') return undefined;
    const [payer, amount, nonce, deadline, signature] = args;
    const wallet = payer.toLowerCase() as Hex;
    const hold = { payer: wallet, amount, nonce, deadline };
    return async (node, block) => {
      const domain = { chainId: node.chainId, escrow: call.to };
      const signed = new HoldSignature(domain, hold, signature, node, block);
      const hasCode = await node.hasCode(wallet, block);
      const opening = { wallet, hasCode, client: undefined };
      if (await failuresLimit(database.asPlatform(), opening)) return false;
      return hasCode ? signed.isValidForContract() : signed.isOfKey();
    };
  };
