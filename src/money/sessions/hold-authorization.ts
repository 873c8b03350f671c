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

/** Maximum seconds from now to an authorization's deadline. */
export const MAX_AHEAD_S = 60 * 60;

/** Minimum seconds until the deadline of an authorization for a new hold: its transaction needs time. */
const MIN_AHEAD_S = 5 * 60;

/** Length in hex of a 65-byte signature by a key. */
const OF_A_KEY = 2 + 2 * 65;

/**
 * Half of the curve's order. A signature with a larger `s` has a twin below; the contract accepts only
 * the lower.
 */
const HALF_ORDER = 0x7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a0n;

const erc1271 = parseAbi(['function isValidSignature(bytes32, bytes) view returns (bytes4)']);
const IS_VALID = '0x1626ba7e';

export interface Hold {
  /** In lower case. */
  readonly payer: Hex;
  /** Base units. */
  readonly amount: bigint;
  readonly nonce: Hex;
  /** Unix seconds. */
  readonly deadline: bigint;
}

/** EIP-712 domain: chain and escrow contract. */
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

/** Returns the typed data that a wallet signs (EIP-712). */
export const holdTypedData = ({ chainId, escrow }: HoldDomain, message: Hold) =>
  ({
    domain: { name: 'PaymentEscrow', version: '1', chainId, verifyingContract: escrow },
    types,
    primaryType: 'Hold',
    message,
  }) as const;

export const holdIdOf = ({ nonce, payer }: Pick<Hold, 'payer' | 'nonce'>): Hex =>
  keccak256(encodeAbiParameters([{ type: 'address' }, { type: 'bytes32' }], [payer, nonce]));

export const newNonce = (): Hex => `0x${randomBytes(32).toString('hex')}`;

/** Returns the latest deadline, in Unix seconds, of an authorization made now. */
export const latestDeadline = (now: number = Date.now()): bigint =>
  BigInt(Math.floor(now / 1_000) + MAX_AHEAD_S);

/** Reports whether an authorization's deadline is in the allowed range now. */
export function isInTime(deadline: bigint, now: number = Date.now()): boolean {
  return deadline > BigInt(Math.floor(now / 1_000)) && deadline <= latestDeadline(now);
}

/** Reports whether an authorization is valid for long enough for a new hold. */
export const hasTimeLeft = (deadline: bigint, now: number = Date.now()): boolean =>
  deadline >= BigInt(Math.ceil(now / 1_000) + MIN_AHEAD_S);

/** The signature of a hold. The hold is hashed once, and the wallet's code called once. */
export class HoldSignature {
  readonly #hash: Hex;
  readonly #payer: Hex;
  readonly #escrow: Hex;
  readonly #signature: Hex;
  readonly #node: Pick<ChainNode, 'call'>;
  readonly #block: number | undefined;
  #taken: Promise<boolean> | undefined;

  /** @param block number of the block in which code is called; the latest by default. */
  constructor(
    domain: HoldDomain,
    hold: Hold,
    signature: Hex,
    node: Pick<ChainNode, 'call'>,
    block?: number,
  ) {
    this.#hash = hashTypedData(holdTypedData(domain, hold));
    this.#payer = hold.payer;
    this.#escrow = domain.escrow;
    this.#signature = signature;
    this.#node = node;
    this.#block = block;
  }

  /**
   * Reports whether the wallet has signed: by its key, checked without the chain, or as a contract
   * (ERC-1271). The escrow accepts signatures by key only of wallets without code.
   *
   * @throws ChainAwayError if the contract cannot be called.
   */
  async isOfWallet(): Promise<boolean> {
    return (await this.isOfKey()) || this.isValidForContract();
  }

  /** Reports whether the wallet's key has signed; the escrow then accepts it of a wallet without code. */
  isOfKey(): Promise<boolean> {
    return isOfItsKey(this.#hash, this.#signature, this.#payer);
  }

  /**
   * Reports whether the wallet's code accepts the signature within the gas of an opening. @throws
   * ChainAwayError
   */
  isValidForContract(): Promise<boolean> {
    return (this.#taken ??= this.#readCode());
  }

  async #readCode(): Promise<boolean> {
    const call = { abi: erc1271, functionName: 'isValidSignature' } as const;
    const data = encodeFunctionData({ ...call, args: [this.#hash, this.#signature] });
    const [account, to] = [this.#escrow, this.#payer];
    try {
      const answer = await this.#node.call({ account, to, data, gas: ESCROW_GAS }, this.#block);
      // An address without a contract returns no data.
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
    return false; // not a point of the curve
  }
}
