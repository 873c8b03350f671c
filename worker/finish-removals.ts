import pLimit from 'p-limit';
import type { Logger } from 'pino';
import type { Database } from '../src/platform/database/database.js';
import { periodically } from '../src/platform/process/periodically.js';
import type { Supervisors } from '../temporal/supervisors.js';

/** Milliseconds between two looks. */
const INTERVAL_MS = 15_000;

/** Agents of one look. */
const PAGE = 200;

/** Calls to Temporal at a time. */
const limit = pLimit(20);

interface FinishDependencies {
  readonly database: Database;
  readonly supervisors: Pick<Supervisors, 'abandon'>;
  /** Takes away what is scheduled for a host. */
  readonly removeSchedules: (host: string) => Promise<void>;
  readonly log: Logger;
}

/** Brings removals of hosts to their end, now and again and again until the signal aborts. */
export function finishRemovalsPeriodically(
  dependencies: FinishDependencies,
  signal: AbortSignal,
): Promise<void> {
  const failure = 'a host is not removed yet, which is tried again';
  const { log } = dependencies;
  const work = () => finishRemovals(dependencies);
  return periodically({ everyMs: INTERVAL_MS, failure, log, work }, signal);
}

/**
 * Takes away what Temporal has of the hosts that operators have removed: schedules and the agents'
 * supervisors, which wait for a worker that does not come. Then the host is forgotten, and its name
 * is free.
 */
export async function finishRemovals({
  database,
  supervisors,
  removeSchedules,
  log,
}: FinishDependencies): Promise<void> {
  const platform = database.asPlatform();
  const hosts = await platform.query<{ id: string }>(
    'SELECT id FROM hosts WHERE removed_at IS NOT NULL ORDER BY id',
  );
  for (const { id: host } of hosts) {
    await removeSchedules(host);
    for (let after = ''; ;) {
      const agents = await platform.query<{ id: string }>(
        `SELECT a.id FROM agents a JOIN hosts h ON h.id = a.host
          WHERE h.id = $host AND (a.deleted_at IS NULL OR a.deleted_at >= h.removed_at)
            AND a.id > $after
          ORDER BY a.id LIMIT ${PAGE}`,
        { host, after },
      );
      await Promise.all(agents.map(({ id }) => limit(() => supervisors.abandon(id))));
      const last = agents.at(-1);
      if (!last) break;
      after = last.id;
    }
    await platform.query('DELETE FROM hosts WHERE id = $host AND removed_at IS NOT NULL', { host });
    log.warn({ host }, 'the host is removed, and its agents are lost');
  }
}
