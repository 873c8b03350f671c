import type { Hex } from 'viem';
import type { AgentRef } from './agent-ref.js';
import type { PaymentFailure } from './payment.js';

/** Events of an agent that operators are notified of (spec 6). */
export type AgentEvent =
  | { readonly event: 'degraded' }
  | { readonly event: 'memory_missing' }
  | { readonly event: 'stop_refused' }
  /** The used share of the memory limit, such as 0.83. */
  | { readonly event: 'memory_filling'; readonly share: number }
  | { readonly event: 'memory_full' }
  /** Crashes handled by the host itself between these times in Unix milliseconds. */
  | {
      readonly event: 'dealt_with_by_host';
      readonly crashes: number;
      readonly from: number;
      readonly until: number;
    }
  /** `crashes` counts recent crashes; zero if failed repairs caused the loop. */
  | { readonly event: 'crash_loop'; readonly crashes: number }
  | {
      readonly event: 'repair_attempt';
      /** The attempt's number, starting at 1. */
      readonly attempt: number;
      readonly maxAttempts: number;
    };

/** Events of the platform that operators are notified of. */
export type PlatformEvent =
  /** The ledger's balances are wrong according to `check:ledger`. */
  | { readonly event: 'ledger_unbalanced'; readonly differences: number }
  /** The chain waits for a signer's nonces from `from` up to, but not including, `until`. */
  | {
      readonly event: 'nonces_missing';
      readonly chainId: number;
      readonly signer: Hex;
      readonly from: string;
      readonly until: string;
    }
  | {
      readonly event: 'payment_failed';
      readonly paymentId: string;
      readonly cause: string;
      readonly failure: PaymentFailure;
    }
  /** Nodes reject transactions because the fee payer's balance is too low. */
  | { readonly event: 'fees_unpayable'; readonly chainId: number; readonly payer: Hex }
  /** A transaction would cost `fee`, more than the limit of a unit of gas or of a transaction. */
  | {
      readonly event: 'fees_too_high';
      readonly chainId: number;
      readonly limit: 'unit' | 'transaction';
      readonly fee: string;
    }
  /** The gas of this UTC day for all users is used up: `limit` units. */
  | { readonly event: 'gas_spent'; readonly limit: number }
  /** Number of payments, sessions, clones and splits that wait for a chain no longer configured. */
  | { readonly event: 'chain_unknown'; readonly chainId: number; readonly waiting: number }
  /** Deliveries of a payment session could not be settled in any attempt. */
  | { readonly event: 'settlement_given_up'; readonly sessionId: string; readonly attempts: number }
  /** Referrals of the UTC day would grant more than the limit, a US dollar amount as text. */
  | { readonly event: 'granted_credits_used_up'; readonly day: string; readonly limit: string }
  /** Payments by the x402 gateway of the UTC day have reached their limit, a US dollar amount as text. */
  | { readonly event: 'x402_payments_used_up'; readonly day: string; readonly limit: string }
  /** The limit of videos of the UTC day for all users is reached. */
  | { readonly event: 'videos_used_up'; readonly day: string; readonly limit: number }
  /**
   * An event of the payment processor fits no checkout, or its payment was not made; no account is credited.
   */
  | { readonly event: 'payment_unmatched'; readonly eventId: string }
  /** A subscription at the payment processor names a checkout that the platform has not made. */
  | { readonly event: 'subscription_unmatched'; readonly subscriptionId: string }
  /**
   * A sold subscription is unknown to the payment processor: the configured key probably belongs to another
   * account.
   */
  | { readonly event: 'subscription_unknown'; readonly subscriptionId: string }
  /** A user had two subscriptions of a kind; this one is refunded and cancelled. */
  | { readonly event: 'second_plan'; readonly subscriptionId: string }
  /** A hold was closed on chain by another party, with this number of base units unpaid. */
  | { readonly event: 'session_unpaid'; readonly sessionId: string; readonly amount: string };

export type NotifiedEvent = AgentEvent | PlatformEvent;

/** All events of the type; the compiler reports a missing one. */
const OF_PLATFORM: Readonly<Record<PlatformEvent['event'], true>> = {
  ledger_unbalanced: true,
  nonces_missing: true,
  payment_failed: true,
  fees_unpayable: true,
  fees_too_high: true,
  gas_spent: true,
  chain_unknown: true,
  settlement_given_up: true,
  session_unpaid: true,
  granted_credits_used_up: true,
  x402_payments_used_up: true,
  videos_used_up: true,
  payment_unmatched: true,
  subscription_unmatched: true,
  subscription_unknown: true,
  second_plan: true,
};

export const isPlatformEvent = (event: NotifiedEvent): event is PlatformEvent =>
  event.event in OF_PLATFORM;

/** A notification for operators. The agent's name and the reason are read from the database at sending time. */
export type Notification = NotifiedEvent & {
  /** A unique id, unchanged when the notification is repeated. */
  readonly id: string;
  /** The agent, or `NO_AGENT` (`outbox.ts`) for events of the platform. */
  readonly agent: Pick<AgentRef, 'agentId' | 'userId'>;
};
