import pLimit from 'p-limit';
import type { Logger } from 'pino';
import type { Database } from '../src/database/database.js';
import { settleMail } from '../src/mail/mail-sender.js';
import type { MailRuns } from '../temporal/mail-runs.js';
import { periodically } from './periodically.js';

/** Between two looks. */
const INTERVAL_MS = 1_000;

/** Taken up at a time. */
const MAX_TOGETHER = 100;

/** Calls to Temporal at a time. */
const limit = pLimit(20);

/**
 * Takes those up that are due, each for this process alone. Those that stay unsettled are handed over
 * again, which starts a run only where Temporal has lost it. After a day they are given up.
 */
const TAKE = `
  UPDATE mails SET due_at = now() + interval '5 minutes'
   WHERE id IN (SELECT id FROM mails
                 WHERE settled_at IS NULL AND due_at <= now()
                   AND requested_at > now() - interval '1 day'
                 ORDER BY due_at LIMIT ${MAX_TOGETHER} FOR UPDATE SKIP LOCKED)
  RETURNING id`;

/** What hands mails to their workflows. */
export interface MailHandOver {
  readonly database: Database;
  readonly runs: Pick<MailRuns, 'start'>;
  readonly log: Logger;
}

/** Hands over what is asked for, again and again until the signal aborts. */
export function handOverMailPeriodically(parts: MailHandOver, signal: AbortSignal): Promise<void> {
  const work = async () => {
    while (!signal.aborted && (await handOverMail(parts)) === MAX_TOGETHER);
  };
  const failure = 'mail is not handed over yet, which is tried again';
  return periodically({ everyMs: INTERVAL_MS, failure, log: parts.log, work }, signal);
}

/**
 * Hands mails that are due to their workflows. Any number of processes may do so at once.
 *
 * @returns how many it took up.
 * @throws UnavailableError when Temporal cannot be reached: they are due again.
 */
export async function handOverMail({ database, runs }: MailHandOver): Promise<number> {
  const due = await database.asPlatform().query<{ id: string }>(TAKE);
  const handed = await Promise.allSettled(
    due.map(({ id }) =>
      limit(async () => {
        // Its run has ended without a word: somebody has ended it.
        if (!(await runs.start(id))) await settleMail(database, id);
      }),
    ),
  );
  const failed = handed.flatMap((each, index) =>
    each.status === 'rejected' ? [{ id: due[index]?.id, reason: each.reason as unknown }] : [],
  );
  if (failed.length > 0) {
    const ids = failed.map(({ id }) => id);
    await database
      .asPlatform()
      .query('UPDATE mails SET due_at = now() WHERE id = ANY ($ids)', { ids });
    throw failed[0]?.reason;
  }
  return due.length;
}
