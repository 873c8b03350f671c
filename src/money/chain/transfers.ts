import type { Hex } from 'viem';
import type { Log, Receipt } from './answers.js';
import { FEE_MANAGER } from './tempo.js';

/** `Transfer(address indexed from, address indexed to, uint256 amount)` (ERC-20). */
const TRANSFER = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef';

/** An address as a topic has it: with zeros before it. */
const ADDRESS_WORD = /^0x0{24}[\da-f]{40}$/;
const WORD_DIGITS = 64;

/** What a transaction has moved of one token; addresses are in lower case. */
export interface TokenTransfer {
  readonly token: Hex;
  readonly from: Hex;
  readonly to: Hex;
  /** Base units. */
  readonly amount: bigint;
  /** Whether it is what the chain takes for the transaction. */
  readonly isFee: boolean;
}

/**
 * What a transaction moved, as its logs have it: a transaction of several calls says nowhere else to
 * whom. Any contract can write such logs of itself, so only those of a known `token` mean anything;
 * those of a reverted transaction are its fee alone.
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
