import type { Hex } from 'viem';
import type { Database, Statements } from '../../platform/database/database.js';
import { TooManyRequestsError, UnavailableError } from '../../lib/errors.js';
import { secondsOfDayLeft } from '../../lib/utc-day.js';
import { NO_AGENT, requestNotification } from '../../notifications/outbox.js';

const DAY_MS = 24 * 60 * 60_000;

/** Maximum gas of a UTC day. */
export interface GasLimits {
  readonly perOwner: number;
  readonly total: number;
}

/** The wallet and the client of an opening, whose failed openings are counted. */
export interface OpeningParties {
  /** In lower case. */
  readonly wallet: Hex;
  /** Network of the client's address. */
  readonly client: string;
}

export interface WantedGas {
  /** Cause of the payment that the gas is for. */
  readonly cause: string;
  readonly gas: bigint;
  /** Undefined without an account: the gas counts for the wallet and for the client. */
  readonly userId: string | undefined;
  readonly opening?: OpeningParties;
}

/** 503: the gas of all owners for this day is used up. */
export class GasSpentError extends UnavailableError {
  override readonly name = 'GasSpentError';

  constructor() {
    super("The platform's gas for this day is used up: retry after midnight UTC", undefined, {
      retryAfter: secondsOfDayLeft(),
    });
  }
}

interface Answer {
  readonly refusedBy: 'owner' | 'all' | null;
  readonly current: string;
}

const RESERVE = `
  SELECT refused_by AS "refusedBy", current
    FROM reserve_gas($cause, $userId, $wallet, $client, $gas::bigint, $perOwner::bigint, $total::bigint)`;

/** The gas that users and strangers may make the operator pay for in a UTC day. */
export class GasBudget {
  readonly #database: Database;
  readonly #limits: GasLimits;

  constructor(database: Database, limits: GasLimits) {
    this.#database = database;
    this.#limits = limits;
  }

  /**
   * Reserves the gas of a payment in the transaction that requires the payment. Other reservations wait
   * until it commits, so this statement comes last.
   *
   * @throws TooManyRequestsError beyond the owner's limit; GasSpentError beyond that of all owners.
   */
  async reserve(db: Statements, { cause, gas, opening, userId }: WantedGas): Promise<void> {
    const { perOwner, total } = this.#limits;
    const [answer] = await db.query<Answer>(RESERVE, {
      cause,
      userId: userId ?? null,
      wallet: opening?.wallet ?? null,
      client: opening?.client ?? null,
      gas: String(gas),
      perOwner,
      total,
    });
    if (answer?.refusedBy === 'all') throw new GasSpentError();
    if (answer?.refusedBy !== 'owner') return;
    throw new TooManyRequestsError(
      'Your gas for transactions of this day is used up: retry after midnight UTC, or with fewer recipients',
      { max: perOwner, resetS: secondsOfDayLeft() },
      undefined,
      { current: Number(answer.current), limit: perOwner },
    );
  }

  /** Runs a transaction that reserves gas; notifies operators once a day that none is left. */
  async notifying<T>(transaction: () => Promise<T>): Promise<T> {
    try {
      return await transaction();
    } catch (error) {
      if (error instanceof GasSpentError) {
        const { total: limit } = this.#limits;
        const day = Math.floor(Date.now() / DAY_MS);
        const event = { event: 'gas_spent', limit } as const;
        // The refused transaction is rolled back.
        await requestNotification(this.#database.asPlatform(), {
          id: `gas-spent-${day}`,
          agent: NO_AGENT,
          ...event,
        });
      }
      throw error;
    }
  }
}
