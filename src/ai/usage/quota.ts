import { randomUUID } from 'node:crypto';
import { hasQuota, PLAN_LIMITS, type Plan } from '../../types/plans.js';
import { Batcher } from '../../lib/batcher.js';
import type { Database } from '../../platform/database/database.js';
import { TooManyRequestsError } from '../../lib/errors.js';
import { SharedReservation } from './shared-reservation.js';
import type { HeldTokens } from './usage-record.js';

/** Maximum number of reservations in one round trip. */
const MAX_BATCH = 200;

/**
 * Seconds for which a reservation outlives its process's last sign of life, and milliseconds between two
 * signs. Another process releases it up to a minute later.
 */
const HOLD_SECONDS = 120;
export const SIGN_OF_LIFE_MS = 15_000;

/** Maximum number of calls reserved in advance for a frequent user, each as large as the current one. */
const MAX_CALLS_AHEAD = 15;
/** Milliseconds for which an advance reservation can be used: much less than it is held. */
const AHEAD_MS = 30_000;

const HOLD = {
  name: 'hold_tokens',
  text: 'SELECT call, admitted, taken, extra FROM hold_tokens($1, $2)',
};

const KEEP = { name: 'keep_reservations', text: 'SELECT keep_reservations($1, $2)' };

export interface TokenClaim {
  readonly callId: string;
  readonly userId: string;
  /** Undefined for users without a quota. */
  readonly plan: Plan | undefined;
  /** Input and output together. */
  readonly tokens: number;
}

interface LimitedClaim extends TokenClaim {
  readonly limit: number;
  /** An advance reservation, without a waiting call. */
  readonly refill: boolean;
}

/** The database's decision on a claim, with numbers as text. */
interface Verdict {
  readonly admitted: boolean;
  /** Tokens used and held this month, without this call. */
  readonly taken: string;
  /** Tokens held for later calls. */
  readonly extra: string;
}

/** 429 (spec section 7). */
export class QuotaExceededError extends TooManyRequestsError {
  override readonly name = 'QuotaExceededError';

  /** `taken`: tokens used this month, and held for calls in flight. */
  constructor(plan: Plan, taken: number, limit: number) {
    super(
      `Monthly token quota exceeded for plan "${plan}". Used ${taken} of ${limit} tokens. ` +
        'Quota resets at the start of next month.',
      { max: limit, resetS: secondsOfMonth() },
      'QUOTA_EXCEEDED',
    );
  }
}

/** Returns the seconds until the next month of UTC, in which the database counts. */
function secondsOfMonth(): number {
  const now = new Date();
  return (Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1) - now.getTime()) / 1_000;
}

/** Monthly token quotas: every call reserves its share before it begins. */
export class Quota {
  readonly #database: Database;
  readonly #held = new Map<string, { reservation: SharedReservation; tokens: number }>();
  /** Reservations for a user's next calls; only of recently active users. */
  readonly #current = new Map<string, SharedReservation>();
  readonly #living = new Set<SharedReservation>();
  /** Users for whom an advance reservation is being requested. */
  readonly #refilling = new Map<string, Promise<void>>();
  #over: string[] = [];
  readonly #batches: Batcher<LimitedClaim, Verdict | 'held'>;

  constructor(database: Database) {
    this.#database = database;
    this.#batches = new Batcher((claims) => this.#holdAll(claims), MAX_BATCH);
  }

  /**
   * Reserves the call's tokens until it is settled, so that concurrent calls cannot exceed the quota.
   * @throws QuotaExceededError if the rest of the month's quota is too small.
   */
  async reserve(claim: TokenClaim): Promise<void> {
    const { plan } = claim;
    if (!hasQuota(plan)) return;
    const limit = PLAN_LIMITS[plan].monthlyTokens;
    const limited = { ...claim, limit, refill: false };
    if (this.#takePart(limited)) {
      this.#refillIfLow(limited);
      return;
    }
    const verdict = await this.#batches.add(limited);
    if (verdict === 'held' || verdict.admitted) return;
    throw new QuotaExceededError(plan, Number(verdict.taken), limit);
  }

  /** Ends a call with usage; returns the reserved tokens, which `settleUsage` must settle. */
  settle(callId: string): HeldTokens | undefined {
    return this.#end(callId, 'used');
  }

  heldFor(callId: string): HeldTokens | undefined {
    const held = this.#held.get(callId);
    return held && { heldBy: held.reservation.terms.id, held: held.tokens };
  }

  /** Ends a call without usage; its tokens are free for other calls. */
  release(callId: string): void {
    this.#end(callId, 'unused');
  }

  /** Returns the reservations that have ended since the last call, to be released. */
  drainEnded(): string[] {
    const over = this.#over;
    this.#over = [];
    return over;
  }

  get hasOver(): boolean {
    return this.#over.length > 0;
  }

  /** Releases advance reservations of users without a call since the last run. */
  retireIdle(): void {
    for (const [userId, reservation] of this.#current) {
      if (reservation.wasTakenLately()) continue;
      this.#current.delete(userId);
      this.#retire(reservation);
    }
  }

  async retireAll(): Promise<void> {
    await Promise.all(this.#refilling.values());
    for (const reservation of this.#current.values()) this.#retire(reservation);
    this.#current.clear();
  }

  /** Sends a sign of life for all reservations of this process. */
  async keep(): Promise<void> {
    await this.#database.call(KEEP, [[...this.#living].map(({ terms }) => terms.id), HOLD_SECONDS]);
  }

  /** Requests more in advance before the current reservation is used up, so that no call waits. */
  #refillIfLow(claim: LimitedClaim): void {
    const { userId } = claim;
    if (this.#current.get(userId)?.low !== true || this.#refilling.has(userId)) return;
    this.#refilling.set(userId, this.#refill(claim));
  }

  async #refill(claim: LimitedClaim): Promise<void> {
    const callId = randomUUID();
    try {
      await this.#batches.add({ ...claim, callId, refill: true });
    } catch {
      // A call without an advance reservation makes its own request and receives the error.
    }
    this.#refilling.delete(claim.userId);
    this.release(callId);
  }

  #takePart({ callId, userId, tokens, limit }: LimitedClaim): boolean {
    const reservation = this.#current.get(userId);
    if (!reservation?.take(tokens, limit)) return false;
    this.#held.set(callId, { reservation, tokens });
    return true;
  }

  #end(callId: string, part: 'used' | 'unused'): HeldTokens | undefined {
    const held = this.#held.get(callId);
    if (!held) return undefined;
    const { reservation, tokens } = held;
    this.#held.delete(callId);
    reservation.end(part === 'unused' ? tokens : 0);
    this.#noticeOver(reservation);
    return { heldBy: reservation.terms.id, held: tokens };
  }

  #retire(reservation: SharedReservation): void {
    reservation.retire();
    this.#noticeOver(reservation);
  }

  #noticeOver(reservation: SharedReservation): void {
    if (reservation.over && this.#living.delete(reservation)) this.#over.push(reservation.terms.id);
  }

  /** Reserves tokens for a batch of claims; the rest of an earlier batch may suffice for some. */
  async #holdAll(claims: readonly LimitedClaim[]): Promise<(Verdict | 'held')[]> {
    const held = new Set(claims.filter((claim) => !claim.refill && this.#takePart(claim)));
    try {
      const verdicts = await this.#reserveOnce(claims.filter((claim) => !held.has(claim)));
      return claims.flatMap((claim) =>
        held.has(claim) ? 'held' : (verdicts.get(claim.callId) ?? []),
      );
    } catch (error) {
      // All claims of a batch fail together.
      for (const { callId } of held) this.release(callId);
      throw error;
    }
  }

  async #reserveOnce(claims: readonly LimitedClaim[]): Promise<Map<string, Verdict>> {
    if (claims.length === 0) return new Map();
    const until = aheadUntil(Date.now());
    const lastOf = new Map(claims.map((claim) => [claim.userId, claim]));
    const requested = claims.map((claim) => {
      const { callId, userId, tokens, limit } = claim;
      const callsAhead = lastOf.get(userId) === claim ? this.#callsAhead(userId) : 0;
      return { callId, userId, tokens, limit, callsAhead, extra: tokens * callsAhead };
    });
    const rows = await this.#database.call<Verdict & { readonly call: string }>(HOLD, [
      HOLD_SECONDS,
      JSON.stringify(requested),
    ]);
    const verdicts = new Map(rows.map((row) => [row.call, row]));
    for (const { callId, userId, tokens, limit, callsAhead } of requested) {
      const verdict = verdicts.get(callId);
      if (!verdict?.admitted) continue;
      const extra = Number(verdict.extra);
      const reservation = new SharedReservation({ id: callId, limit, callsAhead, extra, until });
      this.#living.add(reservation);
      this.#held.set(callId, { reservation, tokens });
      if (lastOf.get(userId)?.callId === callId) this.#lead(userId, reservation);
      else this.#retire(reservation);
    }
    return verdicts;
  }

  /** Returns how many calls to reserve in advance: none at first, then about twice as many each time. */
  #callsAhead(userId: string): number {
    const last = this.#current.get(userId);
    return last ? Math.min(MAX_CALLS_AHEAD, 2 * last.terms.callsAhead + 2) : 0;
  }

  /** Makes a reservation the source of the user's next calls. */
  #lead(userId: string, reservation: SharedReservation): void {
    const last = this.#current.get(userId);
    this.#current.set(userId, reservation);
    if (last) this.#retire(last);
  }
}

/** Returns the time until which an advance reservation may be used: at most the end of the month (UTC). */
function aheadUntil(now: number): number {
  const day = new Date(now);
  return Math.min(now + AHEAD_MS, Date.UTC(day.getUTCFullYear(), day.getUTCMonth() + 1, 1));
}
