import type { Hex } from 'viem';
import { ChainAwayError, type ChainNode, type ChainFor } from '../../money/chain/chain-node.js';
import type { ChainSettings } from '../../money/chain/settings.js';
import type { CloneStore, WaitingClone } from './clone-store.js';
import { paymentFaultOf, paidBy } from './payment-fault.js';

/** Blocks to wait, beyond the confirmations, for a transaction that a reorganization removed. */
const MISSED_BLOCKS = 10;

/** `over`: the clone is not to be made. */
export type PaymentState = 'waiting' | 'paid' | 'over';

interface ClonePaymentParts {
  readonly store: Pick<CloneStore, 'waiting' | 'fail' | 'recordPaid'>;
  readonly node: Pick<ChainNode, 'chainId'> & ChainFor<'blockNumber' | 'receipt'>;
  readonly chain: Pick<ChainSettings, 'treasury' | 'confirmations'>;
}

export class ClonePayments {
  readonly #parts: ClonePaymentParts;

  constructor(parts: ClonePaymentParts) {
    this.#parts = parts;
  }

  /** Checks a payment once and records the change. @throws ChainAwayError */
  async check(id: string): Promise<PaymentState> {
    const { store } = this.#parts;
    const clone = await store.waiting(id);
    if (!clone) return 'over';
    if (clone.paidAt !== null) return 'paid';
    const found = clone.hasParent ? await this.#judge(clone) : PARENT_IS_GONE;
    if (found === 'waiting') return 'waiting';
    if (typeof found === 'string') {
      await store.fail(id, found);
      return 'over';
    }
    await store.recordPaid(id, found);
    return 'paid';
  }

  /** Returns the base units of a final payment; otherwise the reason why not. */
  async #judge({
    amount,
    block,
    chainId,
    hash,
    payer,
    userId,
  }: WaitingClone): Promise<bigint | string> {
    const { node, chain } = this.#parts;
    // The configured chain has changed; this node has no data on that payment.
    if (String(node.chainId) !== chainId) return 'waiting';
    const { confirmations, treasury } = chain;
    if (treasury === undefined) throw new ChainAwayError();
    // Read before the receipt, so that the depth is not overestimated.
    const queries = node.onBehalfOf({ owner: userId, isUrgent: false });
    const latest = await queries.blockNumber();
    const receipt = await queries.receipt(hash as Hex); // its form was checked when it was claimed
    if (!receipt) {
      return latest >= Number(block) + confirmations + MISSED_BLOCKS ? TAKEN_BACK : 'waiting';
    }
    const due = { payer, treasury, amount: BigInt(amount) };
    if (paymentFaultOf(receipt, due)) return TAKEN_BACK;
    const isFinal = latest - receipt.blockNumber + 1 >= confirmations;
    return isFinal ? paidBy(receipt, due) : 'waiting';
  }
}

const PARENT_IS_GONE = 'The parent agent of this clone has been removed';

const TAKEN_BACK =
  'A chain reorganisation removed the payment: repeat the same request once the payment is confirmed again';
