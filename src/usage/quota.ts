import { PLAN_LIMITS, type Plan } from '../accounts/plans.js';
import { Batcher } from '../batcher.js';
import type { Database } from '../database/database.js';
import { TooManyRequestsError } from '../errors.js';

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

const RESERVE = {
  name: 'reserve_tokens',
  text: 'SELECT call, admitted, taken FROM reserve_tokens($1, $2)',
};

/** What one call may use at most, and whose it is. */
export interface Reservation {
  readonly callId: string;
  readonly userId: string;
  /** Undefined for those whom no quota binds. */
  readonly plan: Plan | undefined;
  /** Input and output, at most. */
  readonly tokens: number;
}

interface Verdict {
  readonly admitted: boolean;
  readonly taken: string;
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
  /** Calls under way for which something is held. */
  readonly #held = new Set<string>();
  readonly #batches: Batcher<Reservation & { readonly limit: number }, Verdict>;

  constructor(private readonly database: Database) {
    this.#batches = new Batcher((calls) => this.#reserveAll(calls), MAX_BATCH);
  }

  /**
   * Holds the call's tokens until it is settled, in the database: no number of calls at once gets
   * more than there is. Whoever has no limit is not counted beforehand.
   *
   * @throws QuotaExceededError when less is left this month.
   */
  async reserve(reservation: Reservation): Promise<void> {
    const { plan } = reservation;
    if (!hasQuota(plan)) return;
    const limit = PLAN_LIMITS[plan].monthlyTokens;
    const { admitted, taken } = await this.#batches.add({ ...reservation, limit });
    if (!admitted) throw new QuotaExceededError(plan, Number(taken), limit);
    this.#held.add(reservation.callId);
  }

  /** The call is over: what it holds is about to be settled. @returns whether it holds anything. */
  over(callId: string): boolean {
    return this.#held.delete(callId);
  }

  /** Says that the calls under way are alive, and so what is held for them. */
  async keep(): Promise<void> {
    await this.database.sequelize.query('SELECT keep_reservations($1, $2)', {
      bind: [[...this.#held], HOLD_SECONDS],
    });
  }

  async #reserveAll(
    calls: readonly (Reservation & { readonly limit: number })[],
  ): Promise<Verdict[]> {
    const asked = calls.map(({ callId, userId, tokens, limit }) => ({
      callId,
      userId,
      tokens,
      limit,
    }));
    const rows = await this.database.callFunction<Verdict & { readonly call: string }>(RESERVE, [
      HOLD_SECONDS,
      JSON.stringify(asked),
    ]);
    const verdicts = new Map(rows.map((row) => [row.call, row]));
    return calls.flatMap(({ callId }) => verdicts.get(callId) ?? []);
  }
}
