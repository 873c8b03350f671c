import type { Hex } from 'viem';
import type { Log, Receipt } from './answers.js';
import { FEE_MANAGER } from './tempo.js';

/** Topic of `Transfer(address indexed from, address indexed to, uint256 amount)` (ERC-20). */
const TRANSFER = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef';

/** An address in a topic, padded with leading zeros. */
const ADDRESS_WORD = /^0x0{24}[\da-f]{40}$/;
const WORD_DIGITS = 64;

/** A transfer of a token in a transaction; addresses are in lower case. */
export interface TokenTransfer {
  readonly token: Hex;
  readonly from: Hex;
  readonly to: Hex;
  /** Base units. */
  readonly amount: bigint;
  /** True if the transfer is the chain's transaction fee. */
  readonly isFee: boolean;
}

/**
 * Returns a transaction's transfers from its logs; a transaction of several calls names its recipients
 * nowhere else. Any contract can forge such logs, so only those of a known `token` count. A reverted
 * transaction has only its fee.
 */
export const transfersOf = ({ logs }: Pick<Receipt, 'logs'>): TokenTransfer[] =>
  logs.flatMap((log) => transferOf(log) ?? []);

function transferOf({ address, topics, data }: Log): TokenTransfer | undefined {
  const [event, from, to, another] = topics;
  if (event !== TRANSFER || another !== undefined || data.length !== 2 + WORD_DIGITS)
    return undefined;
  if (!ADDRESS_WORD.test(from ?? '') || !ADDRESS_WORD.test(to ?? '')) return undefined;
  const [sender, recipient] = [addressOf(from), addressOf(to)];
  return {
    token: address,
    from: sender,
    to: recipient,
    amount: BigInt(data),
    isFee: recipient === FEE_MANAGER,
  };
}

const addressOf = (word = ''): Hex => `0x${word.slice(-40)}`;
