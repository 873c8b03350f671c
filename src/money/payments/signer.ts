import { randomUUID } from 'node:crypto';
import type { Logger } from 'pino';
import type { Hex } from 'viem';
import type { Receipt } from '../chain/answers.js';
import { ChainAwayError, NodeRefusalError, type ChainNode } from '../chain/chain-node.js';
import type { Database } from '../../platform/database/database.js';
import { isTempo, type PaymentChain } from './chains.js';
import { feePaidBy, type Fee } from './fee.js';
import type { PaymentCall, PaymentFailure, TransactionPurpose } from '../../types/payment.js';
import { PaymentNode, type Fees } from './payment-node.js';
import {
  PaymentStore,
  signerId,
  type OnEnded,
  type QueuedPayment,
  type SentTransaction,
  type SignerRef,
  type StoredTransaction,
} from './payment-store.js';
import {
  FeeTooHighError,
  signTransaction,
  type SignedTransaction,
  type UnsignedTransaction,
} from './sign.js';
import { KeyMissingError, type OpenedKeys, type SigningKeys } from './signing-keys.js';

/** Maximum number of transactions of one signer in flight. */
export const MAX_ON_THE_WAY = 16;

/** Maximum number of queued payments that are examined at a time: some cannot be signed yet. */
const MAX_CHECKED = 64;

/**
 * Maximum number of payments that would revert now and wait for transactions in flight; beyond that number,
 * all later payments wait.
 */
const MAX_DOUBTFUL = 1_000;

/** Maximum number of nonces of a gap that are filled at a time. */
const MAX_CLOSED = 50;

/** Maximum number of signers whose gaps are remembered. */
const MAX_GAPS = 1_000;

/** Maximum number of transactions signed for a nonce with rising fees; after that the last one waits. */
const MAX_SIGNED = 9;

/**
 * Maximum number of attempts to sign a payment, and milliseconds between them: two minutes in total, or a day if a
 * node's refusal may be due to its own trouble.
 */
const MAX_ATTEMPTS = 24;
const MAX_REFUSALS = 17_280;
const RETRY_MS = 5_000;

const AN_HOUR_MS = 3_600_000;

/** Gas limit of an empty transaction, as high because some chains charge for a new account. */
const GAS_OF_NOTHING = 1_000_000n;

/** Percent of the old fee that a replacement pays: nodes require an increase. */
const RAISE_PERCENT = 125n;

/** Reports whether a payment may be signed, as of a block. @throws ChainAwayError */
export type PaymentCheck = (node: ChainNode, block: number) => Promise<boolean>;

/** Returns the check of a payment just before it is signed; undefined for a payment without a check. */
export type CheckOf = (payment: QueuedPayment) => PaymentCheck | undefined;

export interface SignerParts {
  readonly database: Database;
  readonly chain: PaymentChain;
  readonly keys: Pick<SigningKeys, 'open' | 'feePayerOf' | 'operator'>;
  readonly log: Logger;
  /** Signers whose nonce gaps operators were notified of, until the gaps are closed. */
  readonly gaps: Set<string>;
  readonly onEnded?: OnEnded;
  readonly checkOf?: CheckOf;
  /** Milliseconds between two attempts to sign a payment; 5,000 by default. */
  readonly retryMs?: number;
}

/** Makes the payments of a signer on a chain. Every step is idempotent and may run in any process. */
export class Signer {
  readonly #parts: SignerParts;
  readonly #signer: SignerRef;
  readonly #store: PaymentStore;
  readonly #node: PaymentNode;
  /** Times of the last failed attempt to sign, by queued payment. */
  readonly #tried = new Map<string, number>();
  /** Payments that would revert now, with the last nonce that they may depend on. */
  readonly #doubtful = new Map<string, bigint>();
  /** The nonce for which operators were notified that its fee cannot be paid. */
  #notifiedUnpayable: bigint | undefined;
  /** The hour of Unix time in which operators were notified of a fee above its limit. */
  #notifiedHour: number | undefined;

  constructor(parts: SignerParts, address: Hex) {
    this.#parts = parts;
    this.#signer = { chainId: parts.chain.chainId, address };
    this.#store = new PaymentStore(parts.database, this.#signer, parts.onEnded);
    this.#node = new PaymentNode(parts.chain.node);
  }

  /**
   * Checks transactions in flight and sends queued payments.
   *
   * @returns false if all payments are settled.
   * @throws ChainAwayError: the caller must retry.
   */
  async step(): Promise<boolean> {
    const { next, onTheWay, open } = await this.#store.readQueue();
    if (open === 0) return false;
    const [lowest] = onTheWay.keys();
    const head = lowest === undefined ? 0 : await this.#node.head();
    for (const [nonce, transactions] of onTheWay) {
      await this.#follow(transactions, { head, isFirst: nonce === lowest });
    }
    const free = MAX_ON_THE_WAY - onTheWay.size;
    const [used, waiting] = await Promise.all([
      this.#node.nonceOf(this.#signer.address),
      free > 0 ? this.#store.queued(MAX_CHECKED, this.#notYet(lowest)) : [],
    ]);
    await this.#closeGap({ used, end: lowest ?? next }, true);
    const mayBePaid = used > next && waiting.length > 0 && this.#isKept;
    if (mayBePaid && (await this.#store.failUnknown(used))) return true;
    await this.#sendWaiting(waiting, {
      most: free,
      onTheWay: onTheWay.size,
      nonce: next > used ? next : used,
    });
    return true;
  }

  /**
   * Sends final transactions again that the chain has lost, for example to a node with an older state.
   *
   * @throws ChainAwayError
   */
  async restore(): Promise<void> {
    const { next, onTheWay } = await this.#store.signed();
    const [lowest] = onTheWay.keys();
    const used = await this.#node.nonceOf(this.#signer.address);
    await this.#closeGap({ used, end: lowest ?? next }, false);
  }

  /** Fills the nonces that the chain expects below the lowest nonce in flight. */
  async #closeGap(
    { end, used }: { readonly used: bigint; readonly end: bigint },
    fills: boolean,
  ): Promise<void> {
    if (used >= end) return this.#forgetGap();
    await this.#notifyGap({ from: String(used), until: String(end) });
    for (let nonce = used; nonce < end && nonce < used + BigInt(MAX_CLOSED); nonce++) {
      const final = await this.#store.finalOf(nonce);
      if (!final) {
        if (fills) await this.#fill(nonce);
      } else if (!(await this.#node.knows(final.hash))) {
        await this.#node.broadcast(final.raw);
      }
    }
  }

  async #notifyGap(gap: { readonly from: string; readonly until: string }): Promise<void> {
    const { gaps, log } = this.#parts;
    const { address: signer, chainId } = this.#signer;
    const id = signerId(this.#signer);
    if (gaps.has(id)) return;
    // Gaps that are dropped here are notified again.
    if (gaps.size >= MAX_GAPS) gaps.clear();
    gaps.add(id);
    log.warn({ ...this.#signer, ...gap }, 'nonces are missing on chain');
    const event = { event: 'nonces_missing', chainId, signer, ...gap } as const;
    try {
      await this.#store.notify(`nonces-missing-${randomUUID()}`, event);
    } catch (error) {
      gaps.delete(id);
      throw error;
    }
  }

  #forgetGap(): void {
    const { gaps, log } = this.#parts;
    if (gaps.delete(signerId(this.#signer)))
      log.info(this.#signer, 'no nonces are missing on chain any more');
  }

  async #fill(nonce: bigint): Promise<void> {
    const fees = firstFees(await this.#node.fees());
    const unsigned = { ...this.#unsigned(nonce, this.#nothing, GAS_OF_NOTHING), ...fees };
    const signed = await this.#signWithinLimits(await this.#key(), unsigned);
    if ('raw' in signed) await this.#store.storeFill(unsigned, signed);
  }

  /** Checks the transactions of a nonce: settles the mined one, or pushes the newest. */
  async #follow(
    transactions: readonly StoredTransaction[],
    { head, isFirst }: { readonly head: number; readonly isFirst: boolean },
  ): Promise<void> {
    const { confirmations } = this.#parts.chain;
    for (const transaction of transactions) {
      const receipt = await this.#node.receiptOf(transaction.hash);
      if (!receipt) continue;
      if (head - receipt.blockNumber + 1 >= confirmations) {
        await this.#settle(transaction, receipt);
      }
      return;
    }
    const newest = transactions.find(({ active }) => active);
    const signed = transactions.length;
    if (newest) await this.#push(newest, { signed, head, isFirst });
  }

  /** Returns the fee paid by the operator; on chains other than Tempo it is not in pathUSD. */
  #feeOf(receipt: Receipt): Fee | undefined {
    const { operator } = this.#parts.keys;
    if (operator === undefined || !isTempo(this.#signer.chainId)) return undefined;
    const amount = feePaidBy(operator, receipt);
    return amount > 0n ? { payer: operator, amount, block: receipt.blockHash } : undefined;
  }

  /**
   * Pushes a transaction that is not mined: sends it again, or raises its fee.
   *
   * @param at.signed number of transactions signed for its nonce; this is the newest.
   * @param at.isFirst true if all later nonces wait for it.
   */
  async #push(
    transaction: StoredTransaction,
    { head, isFirst, signed }: { head: number; isFirst: boolean; signed: number },
  ): Promise<void> {
    const { address } = this.#signer;
    const { gas, hash, maxFee, nonce, raw } = transaction;
    if ((await this.#node.nonceOf(address)) > nonce) {
      return this.#considerForeign(transaction, head);
    }
    let isRefused = false;
    if (!(await this.#node.knows(hash))) {
      isRefused = !(await this.#node.broadcast(raw));
      await this.#store.offered(transaction, !isRefused);
      // A transaction that no node had until now has not waited yet.
      if (!isRefused) return;
    }
    if (transaction.waitingMs < this.#parts.chain.feeBumpAfterMs) return;
    const payer = isTempo(this.#signer.chainId) ? this.#parts.keys.feePayerOf(address) : address;
    if (isRefused && !(await this.#node.canPay(payer, gas, maxFee))) {
      if (isFirst) await this.#notifyUnpayable(nonce, payer);
    } else if (signed < MAX_SIGNED) {
      await this.#raise(transaction, transaction.purpose);
    } else if (isRefused && transaction.purpose === 'pay') {
      await this.#raise(transaction, 'cancel');
    }
  }

  /** Notifies once for each nonce that blocks later ones, across all processes and attempts. */
  async #notifyUnpayable(nonce: bigint, payer: Hex): Promise<void> {
    if (this.#notifiedUnpayable === nonce) return;
    const { chainId } = this.#signer;
    const event = { event: 'fees_unpayable', chainId, payer } as const;
    this.#parts.log.error(
      { ...this.#signer, payer },
      'insufficient balance for fees: payments wait for a deposit',
    );
    await this.#store.notify(`fees-unpayable-${signerId(this.#signer)}-${nonce}`, event);
    this.#notifiedUnpayable = nonce;
  }

  /** Requeues a payment if the nonce was finally used by a transaction that is not stored. */
  async #considerForeign(transaction: StoredTransaction, head: number): Promise<void> {
    const { address } = this.#signer;
    const deepest = head - this.#parts.chain.confirmations + 1;
    if (deepest < 0 || (await this.#node.nonceOf(address, deepest)) <= transaction.nonce) return;
    const hashes = await this.#hashesWhereUsed(transaction.nonce, deepest);
    const ours = (await this.#store.unsettled()).get(transaction.nonce) ?? [];
    if (!hashes || ours.some(({ hash }) => hashes.includes(hash))) return;
    await this.#store.requeueUnknown(transaction, this.#isKept);
  }

  /** Finds the block, not later than `latest`, in which the signer used a nonce; returns its transactions. */
  async #hashesWhereUsed(nonce: bigint, latest: number): Promise<readonly Hex[] | undefined> {
    let [before, used] = [-1, latest];
    while (used - before > 1) {
      const middle = Math.floor((before + used) / 2);
      if ((await this.#node.nonceOf(this.#signer.address, middle)) > nonce) used = middle;
      else before = middle;
    }
    return this.#node.hashesOf(used);
  }

  /** Signs a replacement at a higher fee: the same calls, or an empty one that uses up the nonce. */
  async #raise(transaction: StoredTransaction, purpose: TransactionPurpose): Promise<void> {
    const { gas, nonce, paymentId } = transaction;
    const fees = raisedFees(transaction, await this.#node.fees());
    const pays = purpose === 'pay' && paymentId !== null;
    const unsigned = pays
      ? this.#unsigned(nonce, await this.#store.callsOf(paymentId), gas)
      : this.#unsigned(nonce, this.#nothing, GAS_OF_NOTHING);
    const priced = { ...unsigned, ...fees };
    const signed = await this.#signWithinLimits(await this.#key(), priced);
    if ('raw' in signed) await this.#store.replace(transaction, purpose, priced, signed);
  }

  /** Sends queued payments in order, from the first free nonce on. */
  async #sendWaiting(
    waiting: readonly QueuedPayment[],
    { most, nonce, onTheWay }: { most: number; nonce: bigint; onTheWay: number },
  ): Promise<void> {
    let sent = 0;
    for (const payment of waiting) {
      if (sent === most) return;
      this.#tried.delete(payment.id);
      try {
        const by = { nonce: nonce + BigInt(sent), onTheWay: onTheWay + sent };
        const outcome = await this.#sign(payment, by);
        if (outcome === 'waits') return;
        // A payment that was given up has no transaction, so its nonce is free for the next.
        if (outcome === 'sent') sent++;
      } catch (error) {
        if (error instanceof ChainAwayError) throw error;
        if (error instanceof NodeRefusalError) await this.#requireTrials();
        await this.#setAside(payment, error);
      }
    }
  }

  /**
   * Requires that the node can simulate an empty call; otherwise the payment is not at fault. @throws
   * ChainAwayError
   */
  async #requireTrials(): Promise<void> {
    try {
      await this.#node.gasOf(this.#signer.address, this.#nothing);
    } catch (error) {
      throw error instanceof NodeRefusalError ? new ChainAwayError({ cause: error }) : error;
    }
  }

  /** Returns payments to skip for now, so that others are examined. */
  #notYet(lowest: bigint | undefined): string[] {
    const { retryMs = RETRY_MS } = this.#parts;
    const waiting = [...this.#doubtful].filter(
      ([, last]) => lowest !== undefined && lowest <= last,
    );
    const tried = [...this.#tried].filter(([, at]) => performance.now() - at < retryMs);
    return [...waiting, ...tried].map(([id]) => id);
  }

  /** Counts a failed attempt to sign a payment, and gives the payment up after the last one. */
  async #setAside({ id }: QueuedPayment, error: unknown): Promise<void> {
    const attempts = await this.#store.attempted(id);
    this.#parts.log.error({ err: error, payment: id, attempts }, 'payment signing failed');
    const isNodes = error instanceof NodeRefusalError && !error.isOfQuestion;
    const most = isNodes ? MAX_REFUSALS : MAX_ATTEMPTS;
    if (attempts < most) this.#tried.set(id, performance.now());
    else await this.#store.giveUp(id, 'unsignable');
  }

  /**
   * Signs and sends a payment. Returns `aside` if the payment has no transaction in flight, and `waits` if
   * later payments must wait.
   */
  async #sign(
    payment: QueuedPayment,
    { nonce, onTheWay }: { readonly nonce: bigint; readonly onTheWay: number },
  ): Promise<'sent' | 'aside' | 'waits'> {
    const { log } = this.#parts;
    const gas = payment.gas === null ? undefined : BigInt(payment.gas);
    const calls = payment.calls.map((call) => ({ ...call, value: BigInt(call.value) }));
    const check = this.#parts.checkOf?.(payment);
    // Check and simulation use the same state, which is as new as possible.
    const block = check && (await this.#node.head());
    const [needed, current, isAccepted] = await Promise.all([
      this.#node.gasOf(this.#signer.address, calls, gas, block),
      this.#node.fees(),
      check === undefined || block === undefined || check(this.#parts.chain.node, block),
    ]);
    const isDoubtful = this.#doubtful.delete(payment.id);
    if (!isAccepted) {
      log.warn({ payment: payment.id }, 'payment is not accepted any more');
      await this.#store.giveUp(payment.id, 'refused');
      return 'aside';
    }
    if (needed === undefined) {
      // It may depend on transactions in flight: check it again once after these.
      if (onTheWay > 0 && !isDoubtful) {
        if (this.#doubtful.size >= MAX_DOUBTFUL) return 'waits';
        this.#doubtful.set(payment.id, nonce - 1n);
        return 'aside';
      }
      log.warn({ payment: payment.id }, 'payment would be reverted');
      await this.#store.giveUp(payment.id, 'refused');
      return 'aside';
    }
    let key: OpenedKeys;
    try {
      key = await this.#key();
    } catch (error) {
      if (!(error instanceof KeyMissingError)) throw error;
      log.error({ err: error, payment: payment.id }, 'payment cannot be signed');
      await this.#store.giveUp(payment.id, 'unsignable');
      return 'aside';
    }
    const fees = firstFees(current);
    const unsigned = { ...this.#unsigned(nonce, calls, gas ?? needed), ...fees };
    const signed = await this.#signWithinLimits(key, unsigned);
    if (!('raw' in signed)) {
      // All payments pay the same for a unit of gas, but another payment may need less gas.
      if (signed.limit === 'unit') return 'waits';
      this.#tried.set(payment.id, performance.now());
      return 'aside';
    }
    if (!(await this.#store.storeFirst(payment.id, unsigned, signed))) return 'waits';
    const sent = { ...signed, nonce, paymentId: payment.id, purpose: 'pay' } as const;
    const isTaken = await this.#node.broadcast(signed.raw);
    if (!isTaken || !(await this.#isFinalAtOnce(sent))) await this.#store.offered(signed, isTaken);
    return 'sent';
  }

  /** Signs a transaction; above a fee limit notifies operators and returns the error. */
  async #signWithinLimits(
    keys: OpenedKeys,
    unsigned: UnsignedTransaction,
  ): Promise<SignedTransaction | FeeTooHighError> {
    try {
      return await signTransaction(keys, unsigned, this.#parts.chain.feeLimits);
    } catch (error) {
      if (!(error instanceof FeeTooHighError)) throw error;
      await this.#notifyTooHigh(error);
      return error;
    }
  }

  /** Notifies at most once an hour for each chain, across all signers. */
  async #notifyTooHigh(error: FeeTooHighError): Promise<void> {
    const hour = Math.floor(Date.now() / AN_HOUR_MS);
    if (this.#notifiedHour === hour) return;
    const { chainId } = this.#signer;
    this.#parts.log.error({ ...this.#signer, err: error }, 'fee above its maximum: payments wait');
    const { fee, limit } = error;
    const event = { event: 'fees_too_high', chainId, limit, fee: String(fee) } as const;
    await this.#store.notify(`fees-too-high-${chainId}-${hour}`, event);
    this.#notifiedHour = hour;
  }

  /** Settles a transaction that its chain mined immediately, without waiting for the next step. */
  async #isFinalAtOnce(sent: SentTransaction): Promise<boolean> {
    if (this.#parts.chain.confirmations > 1) return false;
    const receipt = await this.#node.receiptOf(sent.hash);
    if (receipt) await this.#settle(sent, receipt);
    return receipt !== undefined;
  }

  #settle(transaction: SentTransaction, receipt: Receipt): Promise<void> {
    return this.#store.settle(transaction, {
      block: receipt.blockNumber,
      failure: failureOf(transaction, receipt),
      fee: this.#feeOf(receipt),
      gas: receipt.gasUsed,
    });
  }

  /**
   * True if the key is a wallet's that only the platform stores: all its transactions are payments. The
   * operator's key may be used elsewhere too; contracts accept each of its calls only once.
   */
  get #isKept(): boolean {
    return this.#signer.address !== this.#parts.keys.operator;
  }

  get #nothing(): readonly PaymentCall[] {
    return [{ to: this.#signer.address, data: '0x', value: 0n }];
  }

  #unsigned(nonce: bigint, calls: readonly PaymentCall[], gas: bigint) {
    return {
      chainId: this.#signer.chainId,
      nonce,
      calls,
      gas,
    } satisfies Partial<UnsignedTransaction>;
  }

  #key = (): Promise<OpenedKeys> => this.#parts.keys.open(this.#signer.address);
}

function failureOf(
  { purpose }: SentTransaction,
  { succeeded }: { readonly succeeded: boolean },
): PaymentFailure | undefined {
  if (purpose === 'cancel') return 'cancelled';
  return succeeded ? undefined : 'reverted';
}

/** Fees that suffice even if the base fee doubles. */
const firstFees = ({ base, priority }: Fees) => ({
  maxFee: base * 2n + priority,
  priorityFee: priority,
});

/** Returns fees that suffice now and are high enough for nodes to accept the replacement. */
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
