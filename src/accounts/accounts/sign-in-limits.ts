import { createHash } from 'node:crypto';
import type { Database } from '../../platform/database/database.js';
import { TooManyRequestsError } from '../../lib/errors.js';
import type { ClientNetworks } from '../../platform/http/client-networks.js';

/** What is counted of sign-ins that fail, and how much of it is let pass. */
interface Bound {
  /** So many fail without a wait. After each further one it is twice as long, from a second on. */
  readonly free: number;
  /** The longest wait, and the time in which one of them is forgotten: seconds. */
  readonly drain: number;
}

const HOUR_S = 3600;

/** One account from one host: after the first ones a guess an hour. */
const PAIR: Bound = { free: 5, drain: HOUR_S };
/** One host, whatever the accounts: many people may be behind it. */
const HOST: Bound = { free: 30, drain: HOUR_S / 4 };
const SITE: Bound = { free: 60, drain: HOUR_S / 4 };
/**
 * One account from all hosts at which its owner has not signed in before. So high that one host or
 * site alone never comes there, and cannot keep the owner from signing in elsewhere.
 */
const ACCOUNT: Bound = { free: 100, drain: HOUR_S / 4 };

interface Counted extends Bound {
  readonly subject: string;
}

/** Who signs in: the email need not have an account. */
export interface SignInAttempt {
  /** Normalized. */
  readonly email: string;
  readonly from: ClientNetworks;
  /** The account's owner has signed in from this host before. */
  readonly known: boolean;
}

const COUNT = {
  name: 'count_sign_in',
  text: 'SELECT count_sign_in($1, $2, $3) AS wait',
};

/**
 * Bounds guesses at passwords, in the database: over all API processes and their restarts. Each is
 * counted before its password is looked at, so that many at once are no way around it. Whoever comes
 * from where the owner has been before is counted for themselves, so that nobody elsewhere can keep
 * the owner out.
 */
export class SignInLimits {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /**
   * @param check undefined when the password was wrong.
   * @throws TooManyRequestsError without having checked anything.
   */
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
      throw new TooManyRequestsError('Too many sign-ins, please try again later.', undefined, {
        retryAfter: Math.ceil(wait),
      });
    }
    let found: T | undefined;
    try {
      found = await check();
    } catch (error) {
      // Nothing was found out about the password.
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

  /** A wait that it has brought about stays: others may have failed as well. */
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

/** What people type as their email may be anything, a password as well. */
const digest = (...parts: readonly string[]): string =>
  createHash('sha256').update(JSON.stringify(parts)).digest('hex');
