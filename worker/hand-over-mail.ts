import type { Logger } from 'pino';
import type { Database } from '../src/database/database.js';
import { settleMail } from '../src/mail/mail-sender.js';
import type { MailRuns } from '../temporal/mail-runs.js';
import {
  callsToTemporal,
  handOver,
  handOverPeriodically,
  MAX_TOGETHER,
  type Handed,
} from './hand-over.js';

const limit = callsToTemporal();

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
export const handOverMailPeriodically = (parts: MailHandOver, signal: AbortSignal): Promise<void> =>
  handOverPeriodically(parts, handed(parts), signal);

/**
 * Hands mails that are due to their workflows. Any number of processes may do so at once.
 *
 * @returns how many it took up.
 * @throws UnavailableError when Temporal cannot be reached: they are due again.
 */
export const handOverMail = (parts: MailHandOver): Promise<number> =>
  handOver(parts.database, handed(parts));

const handed = ({ database, runs }: MailHandOver): Handed => ({
  table: 'mails',
  take: TAKE,
  limit,
  failure: 'mail is not handed over yet, which is tried again',
  async start(id) {
    // Its run has ended without a word: somebody has ended it.
    if (!(await runs.start(id))) await settleMail(database, id);
  },
});
