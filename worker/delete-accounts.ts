import pLimit from 'p-limit';
import type { Logger } from 'pino';
import type { Database } from '../src/database/database.js';
import { UnavailableError } from '../src/errors.js';
import type { AccountDeletionRuns } from '../temporal/account-deletions.js';
import { periodically } from './periodically.js';

/** Milliseconds between two looks. */
const INTERVAL_MS = 5_000;

/** How often to make sure that somebody is about a deletion that is not over. */
const LOOKED_SECONDS = 30;

/** The rest waits for the next look. */
const MAX_AT_ONCE = 200;

/** Calls to Temporal at a time. */
const limit = pLimit(20);

export interface DeleteAccountsDependencies {
  readonly database: Database;
  readonly runs: AccountDeletionRuns;
  readonly log: Logger;
}

/** Has deletions of accounts carried out, now and again and again until the signal aborts. */
export function deleteAccountsPeriodically(
  dependencies: DeleteAccountsDependencies,
  signal: AbortSignal,
): Promise<void> {
  const failure = 'accounts to be deleted are looked for again';
  const { log } = dependencies;
  const work = () => deleteAccounts(dependencies);
  return periodically({ everyMs: INTERVAL_MS, failure, log, work }, signal);
}

/**
 * Starts the run of each deletion that nobody has started, or whose run may have been ended: what was
 * asked for is in the database, and is there until it has happened.
 */
export async function deleteAccounts({
  database,
  runs,
  log,
}: DeleteAccountsDependencies): Promise<void> {
  // Each goes to one look alone, however many workers look.
  const claimed = await database.asPlatform().query<{ userId: string }>(
    `UPDATE account_deletions SET looked_at = now()
      WHERE user_id = ANY (ARRAY(
        SELECT user_id FROM account_deletions
         WHERE looked_at IS NULL OR looked_at < now() - make_interval(secs => ${LOOKED_SECONDS})
         ORDER BY looked_at NULLS FIRST LIMIT ${MAX_AT_ONCE} FOR UPDATE SKIP LOCKED))
      RETURNING user_id AS "userId"`,
  );
  const start = async ({ userId }: { readonly userId: string }) => {
    try {
      await runs.start(userId);
    } catch (error) {
      if (error instanceof UnavailableError) log.info({ userId }, 'a deletion waits for Temporal');
      else log.warn({ userId, err: error }, 'a deletion could not be started: tried again');
    }
  };
  await Promise.all(claimed.map((account) => limit(start, account)));
}
