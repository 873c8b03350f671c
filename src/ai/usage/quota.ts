import { randomUUID } from 'node:crypto';
import { hasQuota, PLAN_LIMITS, type Plan } from '../../types/plans.js';
import { Batcher } from '../../lib/batcher.js';
import type { Database } from '../../platform/database/database.js';
import { TooManyRequestsError } from '../../lib/errors.js';
import { SharedReservation } from './shared-reservation.js';
import type { HeldTokens } from './usage-record.js';

/** Reservations in one round trip. */
const MAX_BATCH = 200;

/**
 * Seconds for which a reservation outlives the last sign of life of its process, and milliseconds
 * between two such signs. What a process that died held is free after the first, and the minute
 * until another one looks for it. So is what was reserved for a call whose
 * process did not hear of it.
 */
const HOLD_SECONDS = 120;
export const SIGN_OF_LIFE_MS = 15_000;

/**
 * Of a user who calls often, so many calls more are reserved for at once, all of the size of the one
 * that asks: they need not wait for the database.
 */
const MAX_CALLS_AHEAD = 15;
/** Milliseconds for which calls take of what was reserved ahead: much less than it is held for. */
const AHEAD_MS = 30_000;

const HOLD = {
  name: 'hold_tokens',
  text: 'SELECT call, admitted, taken, extra FROM hold_tokens($1, $2)',
};

const KEEP = { name: 'keep_reservations', text: 'SELECT keep_reservations($1, $2)' };

/** What one call may use at most, and whose it is. */
export interface TokenClaim {
  readonly callId: string;
  readonly userId: string;
  /** Undefined for those whom no quota binds. */
  readonly plan: Plan | undefined;
  /** Input and output, at most. */
  readonly tokens: number;
}

interface LimitedClaim extends TokenClaim {
  readonly limit: number;
  /** For calls to come, and not for one that waits. */
  readonly refill: boolean;
}

/** What the database says of a claim; numbers as it writes them. */
interface Verdict {
  readonly admitted: boolean;
  /** Used and held this month, without this call. */
  readonly taken: string;
  /** Held for later calls. */
  readonly extra: string;
}

/** 429 of spec 7. */
export class QuotaExceededError extends TooManyRequestsError {
  /** @param taken tokens used this month, and held for calls that are under way. */
  constructor(plan: Plan, taken: number, limit: number) {
    super(
      `Monthly token quota exceeded for plan "${plan}". Used ${taken} of ${limit} tokens. ` +
        'Quota resets at the start of next month.',
      'QUOTA_EXCEEDED',
    );
  }
}

/** The monthly token quotas, of which every call holds its part before it begins. */
export class Quota {
  readonly #database: Database;
  /** Calls under way, and what they hold. */
  readonly #held = new Map<string, { reservation: SharedReservation; tokens: number }>();
  /** The one that a user's next call takes of. Only of those who have called lately. */
  readonly #current = new Map<string, SharedReservation>();
  readonly #living = new Set<SharedReservation>();
  /** Users for whom more is being asked for. */
  readonly #refilling = new Map<string, Promise<void>>();
  #over: string[] = [];
  readonly #batches: Batcher<LimitedClaim, Verdict | 'held'>;

  constructor(database: Database) {
    this.#database = database;
    this.#batches = new Batcher((claims) => this.#holdAll(claims), MAX_BATCH);
  }

  /**
   * Holds the call's tokens until it is settled, in the database: no number of calls at once gets
   * more than there is. Whoever has no limit is not counted beforehand.
   *
   * @throws QuotaExceededError when less is left this month.
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

  /**
   * The call is over: what it held is about to be settled, and `takeOver` to be asked.
   *
   * @returns what it held, if anything.
   */
  settle(callId: string): HeldTokens | undefined {
    return this.#end(callId, 'used');
  }

  /** What a call under way holds, if anything. */
  heldFor(callId: string): HeldTokens | undefined {
    const held = this.#held.get(callId);
    return held && { heldBy: held.reservation.terms.id, held: held.tokens };
  }

  /** The call came to nothing: what it held may be another one's. */
  release(callId: string): void {
    this.#end(callId, 'unused');
  }

  /** The reservations that are over since this was asked last: nothing is to be held by them. */
  takeOver(): string[] {
    const over = this.#over;
    this.#over = [];
    return over;
  }

  get hasOver(): boolean {
    return this.#over.length > 0;
  }

  /** Gives up what is held ahead for users who have not called since this was called last. */
  retireIdle(): void {
    for (const [userId, reservation] of this.#current) {
      if (reservation.wasTakenLately()) continue;
      this.#current.delete(userId);
      this.#retire(reservation);
    }
  }

  /** Gives up all that is held ahead. */
  async retireAll(): Promise<void> {
    await Promise.all(this.#refilling.values());
    for (const reservation of this.#current.values()) this.#retire(reservation);
    this.#current.clear();
  }

  /** Says that the calls under way are alive, and so what is held for them. */
  async keep(): Promise<void> {
    await this.#database.call(KEEP, [[...this.#living].map(({ terms }) => terms.id), HOLD_SECONDS]);
  }

  /** Before what is held ahead is used up, so that no call waits for the database. */
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
      // A call that finds nothing ahead asks for itself, and is told what is wrong.
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

  /** What an earlier batch has left over is enough for some. */
  async #holdAll(claims: readonly LimitedClaim[]): Promise<(Verdict | 'held')[]> {
    const held = new Set(claims.filter((claim) => !claim.refill && this.#takePart(claim)));
    try {
      const verdicts = await this.#ask(claims.filter((claim) => !held.has(claim)));
      return claims.flatMap((claim) =>
        held.has(claim) ? 'held' : (verdicts.get(claim.callId) ?? []),
      );
    } catch (error) {
      // All of them fail together.
      for (const { callId } of held) this.release(callId);
      throw error;
    }
  }

  async #ask(claims: readonly LimitedClaim[]): Promise<Map<string, Verdict>> {
    if (claims.length === 0) return new Map();
    const until = aheadUntil(Date.now());
    const lastOf = new Map(claims.map((claim) => [claim.userId, claim]));
    const asked = claims.map((claim) => {
      const { callId, userId, tokens, limit } = claim;
      const callsAhead = lastOf.get(userId) === claim ? this.#callsAhead(userId) : 0;
      return { callId, userId, tokens, limit, callsAhead, extra: tokens * callsAhead };
    });
    const rows = await this.#database.call<Verdict & { readonly call: string }>(HOLD, [
      HOLD_SECONDS,
      JSON.stringify(asked),
    ]);
    const verdicts = new Map(rows.map((row) => [row.call, row]));
    for (const { callId, userId, tokens, limit, callsAhead } of asked) {
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

  /** Nobody's first call holds more than itself; each next time it is about twice as much. */
  #callsAhead(userId: string): number {
    const last = this.#current.get(userId);
    return last ? Math.min(MAX_CALLS_AHEAD, 2 * last.terms.callsAhead + 2) : 0;
  }

  /** Lets the next calls of the user take of this one. */
  #lead(userId: string, reservation: SharedReservation): void {
    const last = this.#current.get(userId);
    this.#current.set(userId, reservation);
    if (last) this.#retire(last);
  }
}

/** Until when calls take of what is held ahead from now on: not into the next month (UTC). */
function aheadUntil(now: number): number {
  const day = new Date(now);
  return Math.min(now + AHEAD_MS, Date.UTC(day.getUTCFullYear(), day.getUTCMonth() + 1, 1));
}
