import { PLAN_LIMITS, type Plan } from '../accounts/plans.js';
import { Batcher } from '../batcher.js';
import type { Database } from '../database/database.js';
import { TooManyRequestsError } from '../errors.js';
import { SharedReservation } from './shared-reservation.js';
import type { HeldTokens } from './usage-record.js';

/** Reservations in one round trip. */
const MAX_BATCH = 200;

/**
 * Seconds for which a reservation outlives the last sign of life of its process, and milliseconds
 * between two such signs. What a process that died held is free after the first, and the minute
 * until the next pass of the schedule that settles it. So is what was reserved for a call whose
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

/** Whether a plan has a quota; without a plan it is an administrator, who has none. */
export function hasQuota(plan: Plan | undefined): plan is Plan {
  return plan !== undefined && Number.isFinite(PLAN_LIMITS[plan].monthlyTokens);
}

/** The monthly token quotas, of which every call holds its part before it begins. */
export class Quota {
  /** Calls under way, and what they hold. */
  readonly #held = new Map<string, { reservation: SharedReservation; tokens: number }>();
  /** The one that a user's next call takes of. Only of those who have called lately. */
  readonly #current = new Map<string, SharedReservation>();
  readonly #living = new Set<SharedReservation>();
  #over: string[] = [];
  readonly #batches: Batcher<LimitedClaim, Verdict | 'held'>;

  constructor(private readonly database: Database) {
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
    const limited = { ...claim, limit };
    if (this.#takePart(limited)) return;
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

  /** The call came to nothing: what it held may be another one's. */
  giveBack(callId: string): void {
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
  retireAll(): void {
    for (const reservation of this.#current.values()) this.#retire(reservation);
    this.#current.clear();
  }

  /** Says that the calls under way are alive, and so what is held for them. */
  async keep(): Promise<void> {
    await this.database.sequelize.query('SELECT keep_reservations($1, $2)', {
      bind: [[...this.#living].map(({ id }) => id), HOLD_SECONDS],
    });
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
    return { heldBy: reservation.id, held: tokens };
  }

  #retire(reservation: SharedReservation): void {
    reservation.retire();
    this.#noticeOver(reservation);
  }

  #noticeOver(reservation: SharedReservation): void {
    if (reservation.over && this.#living.delete(reservation)) this.#over.push(reservation.id);
  }

  /** What an earlier batch has left over is enough for some. */
  async #holdAll(claims: readonly LimitedClaim[]): Promise<(Verdict | 'held')[]> {
    const held = claims.map((claim) => this.#takePart(claim));
    const asking = claims.filter((_, n) => held[n] === false);
    const verdicts = await this.#ask(asking);
    return claims.flatMap(({ callId }, n) => (held[n] ? 'held' : (verdicts.get(callId) ?? [])));
  }

  async #ask(claims: readonly LimitedClaim[]): Promise<Map<string, Verdict>> {
    if (claims.length === 0) return new Map();
    const now = Date.now();
    const lastOf = new Map(claims.map((claim) => [claim.userId, claim]));
    const asked = claims.map((claim) => {
      const { callId, userId, tokens, limit } = claim;
      const extra = lastOf.get(userId) === claim ? tokens * this.#callsAhead(userId) : 0;
      return { callId, userId, tokens, limit, extra };
    });
    const rows = await this.database.callFunction<Verdict & { readonly call: string }>(HOLD, [
      HOLD_SECONDS,
      JSON.stringify(asked),
    ]);
    const verdicts = new Map(rows.map((row) => [row.call, row]));
    for (const claim of claims) {
      const verdict = verdicts.get(claim.callId);
      if (!verdict?.admitted) continue;
      const reservation = this.#open(claim, Number(verdict.extra), now);
      if (lastOf.get(claim.userId) === claim) this.#lead(claim.userId, reservation);
      else this.#retire(reservation);
    }
    return verdicts;
  }

  /** Nobody's first call holds more than itself; each next time it may be twice what was needed. */
  #callsAhead(userId: string): number {
    return Math.min(MAX_CALLS_AHEAD, 2 * (this.#current.get(userId)?.taken ?? 0));
  }

  #open({ callId, tokens, limit }: LimitedClaim, extra: number, now: number): SharedReservation {
    const until = Math.min(now + AHEAD_MS, nextMonth(now));
    const reservation = new SharedReservation(callId, limit, extra, until);
    this.#living.add(reservation);
    this.#held.set(callId, { reservation, tokens });
    return reservation;
  }

  /** Lets the next calls of the user take of this one. */
  #lead(userId: string, reservation: SharedReservation): void {
    const last = this.#current.get(userId);
    this.#current.set(userId, reservation);
    if (last) this.#retire(last);
  }
}

/** When the month (UTC) after this moment begins. */
function nextMonth(at: number): number {
  const day = new Date(at);
  return Date.UTC(day.getUTCFullYear(), day.getUTCMonth() + 1, 1);
}
