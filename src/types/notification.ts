import type { Hex } from 'viem';
import type { AgentRef } from './agent-ref.js';
import type { PaymentFailure } from './payment.js';

/** What of an agent's life operators are told (spec 6). */
export type AgentEvent =
  | { readonly event: 'degraded' }
  | { readonly event: 'memory_missing' }
  | { readonly event: 'stop_refused' }
  /** The share of what its memory may take that it does take, such as 0.83. */
  | { readonly event: 'memory_filling'; readonly share: number }
  | { readonly event: 'memory_full' }
  /** What its host dealt with by itself, between these times in Unix milliseconds. */
  | {
      readonly event: 'dealt_with_by_host';
      readonly crashes: number;
      readonly from: number;
      readonly until: number;
    }
  /** `crashes` are those that still count; none when it was the repairs that failed. */
  | { readonly event: 'crash_loop'; readonly crashes: number }
  | {
      readonly event: 'repair_attempt';
      /** The first is 1. */
      readonly attempt: number;
      readonly maxAttempts: number;
    };

/** What of the platform itself operators are told. */
export type PlatformEvent =
  /** The ledger's balances are not what they should be, as `check:ledger` says. */
  | { readonly event: 'ledger_unbalanced'; readonly differences: number }
  /** The chain waits for nonces of a signer from the first of them until the one before `until`. */
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
  /** No node takes what is signed, because who pays its fee has not as much. */
  | { readonly event: 'fees_unpayable'; readonly chainId: number; readonly payer: Hex }
  /** So many payments, sessions, clones and splits wait for a chain that is not configured any more. */
  | { readonly event: 'chain_unknown'; readonly chainId: number; readonly waiting: number }
  /** What was delivered for a payment session could not be settled, however often it was tried. */
  | { readonly event: 'settlement_given_up'; readonly sessionId: string; readonly attempts: number }
  /** A hold was ended on chain by somebody else, with so many base units unpaid. */
  | { readonly event: 'session_unpaid'; readonly sessionId: string; readonly amount: string };

export type NotifiedEvent = AgentEvent | PlatformEvent;

/** As the type has them, so that none is forgotten. */
const OF_PLATFORM: Readonly<Record<PlatformEvent['event'], true>> = {
  ledger_unbalanced: true,
  nonces_missing: true,
  payment_failed: true,
  fees_unpayable: true,
  chain_unknown: true,
  settlement_given_up: true,
  session_unpaid: true,
};

export const isOfPlatform = (event: NotifiedEvent): event is PlatformEvent =>
  event.event in OF_PLATFORM;

/**
 * What operators are to be told. Everything that names the agent or says why is read from the
 * database when it is sent.
 */
export type Notification = NotifiedEvent & {
  /** Unique, and the same when it is asked for again. */
  readonly id: string;
  /** `NO_AGENT` (`outbox.ts`) for what is of the platform. */
  readonly agent: Pick<AgentRef, 'agentId' | 'userId'>;
};
