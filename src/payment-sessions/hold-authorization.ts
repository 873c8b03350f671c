import { randomBytes } from 'node:crypto';
import {
  decodeFunctionResult,
  encodeAbiParameters,
  encodeFunctionData,
  hashTypedData,
  keccak256,
  parseAbi,
  parseSignature,
  recoverAddress,
  type Hex,
} from 'viem';
import { CallRevertedError, type ChainNode } from '../chain/chain-node.js';
import { ESCROW_GAS } from './escrow.js';

/** How far ahead an authorization's deadline may be, in seconds. */
export const MOST_AHEAD_S = 60 * 60;

/** Hex digits of a signature that a key alone makes: 65 bytes. */
const OF_A_KEY = 2 + 2 * 65;

/** Above half of the curve's order, another signature is as good: the contract takes one of them. */
const HALF_ORDER = 0x7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a0n;

const erc1271 = parseAbi(['function isValidSignature(bytes32, bytes) view returns (bytes4)']);
const IS_VALID = '0x1626ba7e';

/** What a wallet lets be held of what it has in the escrow. */
export interface Hold {
  /** In lower case. */
  readonly payer: Hex;
  /** Base units. */
  readonly amount: bigint;
  readonly nonce: Hex;
  /** Unix seconds. */
  readonly deadline: bigint;
}

/** Whose word it is, and where. */
export interface HoldDomain {
  readonly chainId: number;
  readonly escrow: Hex;
}

const types = {
  Hold: [
    { name: 'payer', type: 'address' },
    { name: 'amount', type: 'uint256' },
    { name: 'nonce', type: 'bytes32' },
    { name: 'deadline', type: 'uint64' },
  ],
} as const;

/** What a wallet signs (EIP-712). */
export const holdTypedData = ({ chainId, escrow }: HoldDomain, message: Hold) =>
  ({
    domain: { name: 'PaymentEscrow', version: '1', chainId, verifyingContract: escrow },
    types,
    primaryType: 'Hold',
    message,
  }) as const;

/** Names the hold in the contract. */
export const holdIdOf = ({ nonce, payer }: Pick<Hold, 'payer' | 'nonce'>): Hex =>
  keccak256(encodeAbiParameters([{ type: 'address' }, { type: 'bytes32' }], [payer, nonce]));

/** One that nobody has had. */
export const newNonce = (): Hex => `0x${randomBytes(32).toString('hex')}`;

/** The last second of an authorization that is given now. */
export const latestDeadline = (now: number = Date.now()): bigint =>
  BigInt(Math.floor(now / 1_000) + MOST_AHEAD_S);

/** Whether an authorization may be used now. */
export function isInTime(deadline: bigint, now: number = Date.now()): boolean {
  return deadline > BigInt(Math.floor(now / 1_000)) && deadline <= latestDeadline(now);
}

/** A signature under a hold: what it says is hashed once, and the wallet's code asked once. */
export class HoldSignature {
  readonly #hash: Hex;
  readonly #payer: Hex;
  readonly #escrow: Hex;
  readonly #signature: Hex;
  readonly #node: Pick<ChainNode, 'call'>;
  #taken: Promise<boolean> | undefined;

  constructor(domain: HoldDomain, hold: Hold, signature: Hex, node: Pick<ChainNode, 'call'>) {
    this.#hash = hashTypedData(holdTypedData(domain, hold));
    this.#payer = hold.payer;
    this.#escrow = domain.escrow;
    this.#signature = signature;
    this.#node = node;
  }

  /**
   * Whether it is the wallet's: by its key, which needs no chain, or as a contract there (ERC-1271).
   * The escrow takes the word of a key where there is no code.
   *
   * @throws ChainAwayError when a contract would have to be asked.
   */
  async isOfWallet(): Promise<boolean> {
    if (await isOfItsKey(this.#hash, this.#signature, this.#payer)) return true;
    return this.isTakenByCode();
  }

  /** Whether the code of the wallet takes it, within the gas of an opening. @throws ChainAwayError */
  isTakenByCode(): Promise<boolean> {
    return (this.#taken ??= this.#askCode());
  }

  async #askCode(): Promise<boolean> {
    const call = { abi: erc1271, functionName: 'isValidSignature' } as const;
    const data = encodeFunctionData({ ...call, args: [this.#hash, this.#signature] });
    const [account, to] = [this.#escrow, this.#payer];
    try {
      const answer = await this.#node.call({ account, to, data, gas: ESCROW_GAS });
      // Where no contract is, nothing answers.
      return answer.length === 66 && decodeFunctionResult({ ...call, data: answer }) === IS_VALID;
    } catch (error) {
      if (error instanceof CallRevertedError) return false;
      throw error;
    }
  }
}

async function isOfItsKey(hash: Hex, signature: Hex, payer: Hex): Promise<boolean> {
  if (signature.length !== OF_A_KEY) return false;
  try {
    const { s, v } = parseSignature(signature);
    if (BigInt(s) > HALF_ORDER || (v !== 27n && v !== 28n)) return false;
    return (await recoverAddress({ hash, signature })).toLowerCase() === payer;
  } catch {
    return false; // no point of the curve
  }
}
