import { encodeFunctionData, zeroAddress, type Hex } from 'viem';
import { PLATFORM, type Chain, type ChainNode, type NodeCaller } from '../chain/chain-node.js';
import { escrowAbi } from '../chain/payment-escrow.js';
import type { ChainSettings } from '../chain/settings.js';
import { PATH_USD } from '../chain/tempo.js';
import { cachedFor } from '../../lib/cached-for.js';
import { holdSecondsOf, type PaymentSessionSettings } from './settings.js';

/** Milliseconds for which a check of the contract's constants stays valid. */
const TERMS_KEPT_MS = 60_000;

/**
 * Gas limit of a call: the code of a contract wallet checks its signature, and the cost of a transfer
 * depends on the balances.
 */
export const ESCROW_GAS = 2_000_000n;

/** The contract at `ESCROW_ADDRESS` differs from the settings. */
export class WrongEscrowError extends Error {
  override readonly name = 'WrongEscrowError';

  /** @param differing the names of the contract's constants that differ. */
  constructor(readonly differing: readonly string[]) {
    super(
      `The contract at ESCROW_ADDRESS has another ${differing.join(', ')}: correct the settings`,
    );
  }
}

/** The escrow contract, its operator and its treasury, with addresses in lower case. */
export interface EscrowTerms {
  readonly escrow: Hex;
  readonly operator: Hex;
  readonly treasury: Hex;
  readonly holdSeconds: bigint;
}

/** A hold of a deposit as the contract stores it. */
export interface EscrowHold {
  /** Base units. */
  readonly amount: bigint;
  readonly settled: bigint;
  /** Time from which the wallet can reclaim the rest. */
  readonly expiresAt: Date;
  readonly closed: boolean;
}

interface Call {
  readonly to: Hex;
  readonly data: Hex;
  readonly value: bigint;
}

export interface SignedHold {
  readonly payer: Hex;
  /** Base units. */
  readonly amount: bigint;
  readonly nonce: Hex;
  /** Unix seconds. */
  readonly deadline: bigint;
  readonly signature: Hex;
}

/** Returns the escrow's terms, or undefined if one of them is not configured: no session can be opened. */
export function escrowTerms(
  { escrow, operator, treasury }: Pick<ChainSettings, 'escrow' | 'operator' | 'treasury'>,
  { holdMs }: Pick<PaymentSessionSettings, 'holdMs'>,
): EscrowTerms | undefined {
  if (!escrow || !operator || !treasury) return undefined;
  const holdSeconds = holdSecondsOf(holdMs);
  return { escrow, operator: operator.address, treasury, holdSeconds };
}

/** Encodes the call that opens a signed hold; the contract accepts it only from its operator. */
export function openCall(
  escrow: Hex,
  { amount, deadline, nonce, payer, signature }: SignedHold,
): { readonly calls: readonly [Call]; readonly gas: bigint } {
  const data = encodeFunctionData({
    abi: escrowAbi,
    functionName: 'open',
    args: [payer, amount, nonce, deadline, signature],
  });
  return { calls: [{ to: escrow, data, value: 0n }], gas: ESCROW_GAS };
}

/**
 * Reads a hold as of the latest block or the given block, from any escrow contract.
 *
 * @returns undefined if the contract has no such hold.
 * @throws ChainAwayError
 */
export async function readHold(
  node: Pick<ChainNode, 'read'>,
  escrow: Hex,
  holdId: Hex,
  block?: number,
): Promise<EscrowHold | undefined> {
  const call = { address: escrow, abi: escrowAbi, functionName: 'holds', args: [holdId] } as const;
  const blockNumber = block === undefined ? undefined : BigInt(block);
  const [payer, amount, settled, expiry, closed] = await node.read((client) =>
    client.readContract({ ...call, blockNumber }),
  );
  if (payer === zeroAddress) return undefined;
  return { amount, settled, expiresAt: new Date(Number(expiry) * 1_000), closed };
}

export class Escrow {
  readonly terms: EscrowTerms;
  readonly #node: Chain;
  readonly #check: () => Promise<void>;

  constructor(node: Chain, terms: EscrowTerms) {
    this.#node = node;
    this.terms = terms;
    this.#check = cachedFor(TERMS_KEPT_MS, () => this.#compare());
  }

  get chainId(): number {
    return this.#node.chainId;
  }

  /**
   * Returns the payer's base units in the escrow that are not held.
   *
   * @throws WrongEscrowError, ChainAwayError
   */
  async available(payer: Hex, caller: NodeCaller): Promise<bigint> {
    await this.#check();
    const call = { abi: escrowAbi, functionName: 'available', args: [payer] } as const;
    return this.#node
      .onBehalfOf(caller)
      .read((client) => client.readContract({ ...call, address: this.terms.escrow }));
  }

  /**
   * Compares the contract's constants with the settings: funds in a differing contract could be paid to
   * another address, or be reclaimed before settlement.
   */
  async #compare(): Promise<void> {
    const { escrow, holdSeconds, operator, treasury } = this.terms;
    const wanted = { token: PATH_USD, operator, treasury, holdSeconds } as const;
    const node = this.#node.onBehalfOf(PLATFORM);
    const says = async (functionName: keyof typeof wanted) => {
      const call = { address: escrow, abi: escrowAbi, functionName } as const;
      const answer = await node.read((client) => client.readContract(call));
      return String(answer).toLowerCase() === String(wanted[functionName]) ? [] : [functionName];
    };
    const names = ['token', 'operator', 'treasury', 'holdSeconds'] as const;
    const differing = (await Promise.all(names.map(says))).flat();
    if (differing.length > 0) throw new WrongEscrowError(differing);
  }
}
