import type { Logger } from 'pino';
import type { Hex } from 'viem';
import type { Database } from '../database/database.js';
import type { PaymentChain } from './chains.js';
import type { PaymentCall, PaymentFailure } from './payment.js';
import { PaymentNode, type Fees } from './payment-node.js';
import {
  PaymentStore,
  type QueuedPayment,
  type SignerRef,
  type StoredTransaction,
} from './payment-store.js';
import { signTransaction, type UnsignedTransaction } from './sign.js';
import { KeyMissingError, type SigningKeys } from './signing-keys.js';

/** Transactions of one signer that are on their way at a time. */
export const MAX_ON_THE_WAY = 16;

/** A transaction that takes the place of another one costs so much more, at least: nodes ask for it. */
const RAISE_PERCENT = 125n;

export interface SignerParts {
  readonly database: Database;
  readonly chain: PaymentChain;
  readonly keys: Pick<SigningKeys, 'open'>;
  readonly log: Logger;
}

/** Makes the payments of one signer on one chain. Every step may be done again, by any process. */
export class Signer {
  readonly #parts: SignerParts;
  readonly #signer: SignerRef;
  readonly #store: PaymentStore;
  readonly #node: PaymentNode;

  constructor(parts: SignerParts, address: Hex) {
    this.#parts = parts;
    this.#signer = { chainId: parts.chain.chainId, address };
    this.#store = new PaymentStore(parts.database, this.#signer);
    this.#node = new PaymentNode(parts.chain.node);
  }

  /**
   * Looks at what is on its way, and sends what waits.
   *
   * @returns false when nothing is left to be paid.
   * @throws ChainAwayError: it is to be done again.
   */
  async step(): Promise<boolean> {
    if ((await this.#store.claim()) === 0) return false;
    const head = await this.#node.head();
    const onTheWay = await this.#store.unsettled();
    for (const transactions of onTheWay.values()) await this.#follow(transactions, head);
    const free = MAX_ON_THE_WAY - onTheWay.size;
    if (free > 0) await this.#sendWaiting(free, onTheWay.size);
    return true;
  }

  /** One nonce that something was signed for: the newest of it counts, unless another one was mined. */
  async #follow(transactions: readonly StoredTransaction[], head: number): Promise<void> {
    const { confirmations } = this.#parts.chain;
    for (const transaction of transactions) {
      const receipt = await this.#node.receiptOf(transaction.hash);
      if (!receipt) {
        if (transaction.block !== undefined) await this.#store.seenIn(transaction, undefined);
        continue;
      }
      if (transaction.block !== receipt.blockNumber) {
        await this.#store.seenIn(transaction, receipt.blockNumber);
      }
      if (head - receipt.blockNumber + 1 >= confirmations) {
        await this.#store.settle(transaction, receipt.blockNumber, failureOf(transaction, receipt));
      }
      return;
    }
    const newest = transactions.find(({ active }) => active);
    if (newest) await this.#push(newest, head);
  }

  /** A transaction that is in no block. */
  async #push(transaction: StoredTransaction, head: number): Promise<void> {
    const { address } = this.#signer;
    if ((await this.#node.nonceOf(address)) > transaction.nonce) {
      return this.#considerForeign(transaction, head);
    }
    if (!(await this.#node.knows(transaction.hash))) {
      await this.#store.offered(transaction, await this.#node.broadcast(transaction.raw));
    }
    if (transaction.waitingMs >= this.#parts.chain.feeBumpAfterMs) await this.#raise(transaction);
  }

  /** The nonce is gone, and none of ours is known to have it. */
  async #considerForeign(transaction: StoredTransaction, head: number): Promise<void> {
    const { address } = this.#signer;
    const deepest = head - this.#parts.chain.confirmations + 1;
    if (deepest < 0 || (await this.#node.nonceOf(address, deepest)) <= transaction.nonce) return;
    const hashes = await this.#hashesWhereUsed(transaction.nonce, deepest);
    const ours = (await this.#store.unsettled()).get(transaction.nonce) ?? [];
    if (!hashes || ours.some(({ hash }) => hashes.includes(hash))) return;
    await this.#store.startAnew(transaction);
  }

  /** All transactions of the block in which the signer used a nonce, which is not a later one than that. */
  async #hashesWhereUsed(nonce: bigint, latest: number): Promise<readonly Hex[] | undefined> {
    let [before, used] = [-1, latest];
    while (used - before > 1) {
      const middle = Math.floor((before + used) / 2);
      if ((await this.#node.nonceOf(this.#signer.address, middle)) > nonce) used = middle;
      else before = middle;
    }
    return this.#node.hashesOf(used);
  }

  /** The same calls under the same nonce, for more. */
  async #raise(transaction: StoredTransaction): Promise<void> {
    const { paymentId } = transaction;
    if (paymentId === null) return;
    const fees = await this.#node.fees();
    const raised = raisedFees(transaction, fees);
    const calls = await this.#store.callsOf(paymentId);
    const unsigned = { ...this.#unsigned(transaction.nonce, calls, transaction.gas), ...raised };
    const signed = await signTransaction(await this.#key(), unsigned);
    await this.#store.replace(transaction, transaction.purpose, unsigned, signed);
  }

  async #sendWaiting(most: number, onTheWay: number): Promise<void> {
    const waiting = await this.#store.queued(most);
    for (const payment of waiting) {
      if (!(await this.#sign(payment, onTheWay))) return;
      onTheWay++;
    }
  }

  /** @returns false when those behind it have to wait, too. */
  async #sign(payment: QueuedPayment, onTheWay: number): Promise<boolean> {
    const { log } = this.#parts;
    const calls = payment.calls.map((call) => ({ ...call, value: BigInt(call.value) }));
    const needed = await this.#node.gasOf(this.#signer.address, calls);
    if (needed === undefined) {
      // What is before it may be what it builds on.
      if (onTheWay > 0) return false;
      log.warn({ payment: payment.id }, 'a payment would be reverted');
      await this.#store.giveUp(payment.id, 'refused');
      return true;
    }
    let key: Hex;
    try {
      key = await this.#key();
    } catch (error) {
      if (!(error instanceof KeyMissingError)) throw error;
      log.error({ err: error, payment: payment.id }, 'a payment cannot be signed');
      await this.#store.giveUp(payment.id, 'unsignable');
      return true;
    }
    const { base, priority } = await this.#node.fees();
    const [next, used] = await Promise.all([
      this.#store.nextNonce(),
      this.#node.nonceOf(this.#signer.address),
    ]);
    const nonce = next !== undefined && next > used ? next : used;
    const fees = { maxFee: base * 2n + priority, priorityFee: priority };
    const unsigned = { ...this.#unsigned(nonce, calls, BigInt(payment.gas ?? needed)), ...fees };
    const signed = await signTransaction(key, unsigned);
    if (!(await this.#store.storeFirst(payment.id, unsigned, signed))) return false;
    await this.#node.broadcast(signed.raw);
    return true;
  }

  #unsigned(nonce: bigint, calls: readonly PaymentCall[], gas: bigint) {
    return {
      chainId: this.#signer.chainId,
      nonce,
      calls,
      gas,
    } satisfies Partial<UnsignedTransaction>;
  }

  #key = (): Promise<Hex> => this.#parts.keys.open(this.#signer.address);
}

function failureOf(
  { purpose }: StoredTransaction,
  { succeeded }: { readonly succeeded: boolean },
): PaymentFailure | undefined {
  if (purpose === 'cancel') return 'cancelled';
  return succeeded ? undefined : 'reverted';
}

/** Enough for now, and so much more than before that nodes take it in the other one's place. */
function raisedFees(
  before: Pick<StoredTransaction, 'maxFee' | 'priorityFee'>,
  { base, priority }: Fees,
): Pick<UnsignedTransaction, 'maxFee' | 'priorityFee'> {
  const raised = (fee: bigint) => (fee * RAISE_PERCENT) / 100n + 1n;
  return {
    maxFee: larger(raised(before.maxFee), base * 2n + priority),
    priorityFee: larger(raised(before.priorityFee), priority),
  };
}

const larger = (a: bigint, b: bigint) => (a > b ? a : b);
