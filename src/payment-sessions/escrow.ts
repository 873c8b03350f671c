import { encodeFunctionData, zeroAddress, type Hex } from 'viem';
import type { ChainNode } from '../chain/chain-node.js';
import { escrowAbi } from '../chain/payment-escrow.js';
import type { ChainSettings } from '../chain/settings.js';
import { PATH_USD } from '../chain/tempo.js';
import { keptFor } from '../kept-for.js';
import { holdSecondsOf, type PaymentSessionSettings } from './settings.js';

/** For how long the contract is taken to be the one that it was last found to be, in milliseconds. */
const TERMS_KEPT_MS = 60_000;

/**
 * Most gas of a call: a wallet that is a contract is asked what it thinks of its signature, and what a transfer
 * takes hangs on whether its payer has something of the token by then.
 */
export const ESCROW_GAS = 2_000_000n;

/** What the contract at `ESCROW_ADDRESS` is not what the settings say of it. */
export class WrongEscrowError extends Error {
  override readonly name = 'WrongEscrowError';

  /** @param differing the names of the contract's own constants. */
  constructor(readonly differing: readonly string[]) {
    super(`The contract at ESCROW_ADDRESS has another ${differing.join(', ')}`);
  }
}

/** Who signs, who is paid, and where deposits are held. All are in lower case. */
export interface EscrowTerms {
  readonly escrow: Hex;
  readonly operator: Hex;
  readonly treasury: Hex;
  readonly holdSeconds: bigint;
}

/** What is held of a deposit, as the contract has it. */
export interface EscrowHold {
  /** Base units. */
  readonly amount: bigint;
  readonly settled: bigint;
  /** From then on the wallet can reclaim the rest. */
  readonly expiresAt: Date;
  readonly closed: boolean;
}

interface Call {
  readonly to: Hex;
  readonly data: Hex;
  readonly value: bigint;
}

/** What a payer has signed. */
export interface SignedHold {
  readonly payer: Hex;
  /** Base units. */
  readonly amount: bigint;
  readonly nonce: Hex;
  /** Unix seconds. */
  readonly deadline: bigint;
  readonly signature: Hex;
}

/** Undefined where one of them is not configured: no session is opened there. */
export function escrowTerms(
  { escrow, operator, treasury }: Pick<ChainSettings, 'escrow' | 'operator' | 'treasury'>,
  { holdMs }: Pick<PaymentSessionSettings, 'holdMs'>,
): EscrowTerms | undefined {
  if (!escrow || !operator || !treasury) return undefined;
  const holdSeconds = holdSecondsOf(holdMs);
  return { escrow, operator: operator.address, treasury, holdSeconds };
}

/** Has the contract hold what a payer has signed, which nobody but its operator can ask for. */
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
 * What a hold is as of the latest block, or the one of a number, whichever contract has it.
 *
 * @returns undefined where the contract knows of none.
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

/** The contract that holds deposits now. */
export class Escrow {
  readonly terms: EscrowTerms;
  readonly #node: ChainNode;
  readonly #check: () => Promise<void>;

  constructor(node: ChainNode, terms: EscrowTerms) {
    this.#node = node;
    this.terms = terms;
    this.#check = keptFor(TERMS_KEPT_MS, () => this.#compare());
  }

  get chainId(): number {
    return this.#node.chainId;
  }

  /**
   * Base units that a payer has there, and that are not held.
   *
   * @throws WrongEscrowError, ChainAwayError
   */
  async available(payer: Hex): Promise<bigint> {
    await this.#check();
    const call = { abi: escrowAbi, functionName: 'available', args: [payer] } as const;
    return this.#node.read((client) =>
      client.readContract({ ...call, address: this.terms.escrow }),
    );
  }

  /** What is held there could go to somebody else, or be taken back before it is settled. */
  async #compare(): Promise<void> {
    const { escrow, holdSeconds, operator, treasury } = this.terms;
    const wanted = { token: PATH_USD, operator, treasury, holdSeconds } as const;
    const says = async (functionName: keyof typeof wanted) => {
      const call = { address: escrow, abi: escrowAbi, functionName } as const;
      const answer = await this.#node.read((client) => client.readContract(call));
      return String(answer).toLowerCase() === String(wanted[functionName]) ? [] : [functionName];
    };
    const names = ['token', 'operator', 'treasury', 'holdSeconds'] as const;
    const differing = (await Promise.all(names.map(says))).flat();
    if (differing.length > 0) throw new WrongEscrowError(differing);
  }
}
