import type { Logger } from 'pino';
import type { Database } from '../src/platform/database/database.js';
import { FairLimiter } from '../src/lib/fair-limiter.js';
import { periodically } from '../src/platform/process/periodically.js';
import type { Supervisors } from '../temporal/supervisors.js';

const INTERVAL_MS = 15_000;

const PAGE = 200;

/** Concurrent calls to Temporal. */
const limiter = new FairLimiter({ atOnce: 20, perOwner: 20 });

interface FinishDependencies {
  readonly database: Database;
  readonly supervisors: Pick<Supervisors, 'abandon'>;
  readonly removeSchedules: (host: string) => Promise<void>;
  readonly log: Logger;
}

/** Finishes removals of hosts, at once and then periodically until the signal aborts. */
export function finishRemovalsPeriodically(
  dependencies: FinishDependencies,
  signal: AbortSignal,
): Promise<void> {
  const failure = 'a host could not be removed, retrying';
  const { log } = dependencies;
  const work = () => finishRemovals(dependencies);
  return periodically({ everyMs: INTERVAL_MS, failure, log, work }, signal);
}

/**
 * Removes the schedules of removed hosts, and their agents' supervisors, which wait for a worker that no
 * longer exists. Then the host's row is deleted, and its name is free.
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
      await Promise.all(
        agents.map(({ id }) => limiter.run({ owner: host }, () => supervisors.abandon(id))),
      );
      const last = agents.at(-1);
      if (!last) break;
      after = last.id;
    }
    await platform.query('DELETE FROM hosts WHERE id = $host AND removed_at IS NOT NULL', { host });
    log.warn({ host }, 'the host is removed, and its agents are lost');
  }
}
