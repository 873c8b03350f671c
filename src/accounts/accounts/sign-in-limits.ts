import { createHash } from 'node:crypto';
import type { Database } from '../../platform/database/database.js';
import { TooManyRequestsError } from '../../lib/errors.js';
import type { ClientNetworks } from '../../platform/http/client-networks.js';

interface FailureLimit {
  /** Failures without a wait. Each further failure doubles the wait, which starts at one second. */
  readonly free: number;
  /** Seconds: the longest wait, and the time after which one failure is forgotten. */
  readonly drain: number;
}

const HOUR_S = 3600;

/** One account from one host: after the free failures one guess per hour. */
const PAIR: FailureLimit = { free: 5, drain: HOUR_S };
/** For one host over all accounts: many people may share a host. */
const HOST: FailureLimit = { free: 30, drain: HOUR_S / 4 };
const SITE: FailureLimit = { free: 60, drain: HOUR_S / 4 };
/** One account from all hosts new to it: too high for a single site to lock the owner out elsewhere. */
const ACCOUNT: FailureLimit = { free: 100, drain: HOUR_S / 4 };

interface Counted extends FailureLimit {
  readonly subject: string;
}

/** A sign-in attempt; an account with this email need not exist. */
export interface SignInAttempt {
  /** Normalized email. */
  readonly email: string;
  readonly from: ClientNetworks;
  readonly known: boolean;
}

const COUNT = { name: 'count_sign_in', text: 'SELECT count_sign_in($1, $2, $3) AS wait' };

/**
 * Limits password guesses in the database, so over all API processes and restarts. Attempts are counted
 * before the password check, so that concurrent ones cannot bypass the limit. Hosts known for the account
 * count separately, so that strangers cannot lock the owner out.
 */
export class SignInLimits {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /** Counts an attempt, then runs the check, which returns undefined for a wrong password. */
  async attempt<T>(
    attempt: SignInAttempt,
    check: () => Promise<T | undefined>,
  ): Promise<T | undefined> {
    const counted = countedOf(attempt);
    const [row] = await this.#database.call<{ wait: number }>(COUNT, [
      counted.map(({ subject }) => subject),
      counted.map(({ free }) => free),
      counted.map(({ drain }) => drain),
    ]);
    const wait = row?.wait ?? 0;
    if (wait > 0) {
      const resetS = Math.ceil(wait);
      throw new TooManyRequestsError(
        'Too many sign-ins, please try again later.',
        { max: await this.#refusing(counted), resetS },
        undefined,
        { retryAfter: resetS },
      );
    }
    let found: T | undefined;
    try {
      found = await check();
    } catch (error) {
      // The check reached no result, so the attempt does not count.
      await this.#release(counted);
      throw error;
    }
    if (found !== undefined) {
      const [pair, ...others] = counted;
      await this.#release(others);
      if (pair) await this.#forget(pair);
    }
    return found;
  }

  /** Returns the failures that the longest blocked subject has free. */
  async #refusing(counted: readonly Counted[]): Promise<number> {
    const [blocked] = await this.#database.asPlatform().query<{ subject: string }>(
      `SELECT subject FROM sign_in_attempts WHERE subject = ANY ($subjects)
        ORDER BY blocked_until DESC NULLS LAST LIMIT 1`,
      { subjects: counted.map(({ subject }) => subject) },
    );
    const refusing = counted.find(({ subject }) => subject === blocked?.subject) ?? counted[0];
    return refusing?.free ?? 0;
  }

  /** Uncounts the attempt. A wait it caused stays, because other attempts may have failed as well. */
  async #release(counted: readonly Counted[]): Promise<void> {
    if (counted.length === 0) return;
    await this.#database.asPlatform().query(
      `UPDATE sign_in_attempts a SET drained_at = a.drained_at - make_interval(secs => given.drain)
         FROM unnest($subjects::text[], $drains::float8[]) AS given (subject, drain)
        WHERE a.subject = given.subject`,
      {
        subjects: counted.map(({ subject }) => subject),
        drains: counted.map(({ drain }) => drain),
      },
    );
  }

  async #forget({ subject }: Counted): Promise<void> {
    await this.#database
      .asPlatform()
      .query('DELETE FROM sign_in_attempts WHERE subject = $subject', { subject });
  }
}

function countedOf({ email, from, known }: SignInAttempt): readonly Counted[] {
  const pair = { subject: `pair:${digest(email, from.host)}`, ...PAIR };
  if (known) return [pair];
  return [
    pair,
    { subject: `host:${from.host}`, ...HOST },
    ...(from.site === from.host ? [] : [{ subject: `site:${from.site}`, ...SITE }]),
    { subject: `account:${digest(email)}`, ...ACCOUNT },
  ];
}

/** Hashed because users may type anything as their email, even a password. */
const digest = (...parts: readonly string[]): string =>
  createHash('sha256').update(JSON.stringify(parts)).digest('hex');
