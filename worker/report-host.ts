import type { Logger } from 'pino';
import type { DockerHost } from '../src/containers/docker-host.js';
import type { Database } from '../src/database/database.js';
import { reportHost, type HostReport } from '../src/hosts/hosts.js';

/** Between two reports; a host whose Docker has come back is to be used soon. */
const INTERVAL_MS = 10_000;
const DOCKER_AWAY_INTERVAL_MS = 2_000;

export interface HostReporting {
  readonly database: Database;
  readonly docker: Pick<DockerHost, 'available'>;
  readonly host: Omit<HostReport, 'engineAvailable'>;
  readonly log: Logger;
}

/**
 * Writes the worker's host down again and again, until the signal aborts. A report that does not
 * come through is made up for by the next.
 *
 * @returns after the first one was tried.
 */
export async function reportPeriodically(
  { database, docker, host, log }: HostReporting,
  signal: AbortSignal,
): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  signal.addEventListener('abort', () => clearTimeout(timer), { once: true });

  const report = async (): Promise<void> => {
    let intervalMs = INTERVAL_MS;
    try {
      const engineAvailable = await docker.available();
      if (!engineAvailable) intervalMs = DOCKER_AWAY_INTERVAL_MS;
      await reportHost(database, { ...host, engineAvailable });
    } catch (error) {
      if (!signal.aborted) log.warn({ err: error }, 'the host could not be written down');
    }
    if (!signal.aborted) timer = setTimeout(() => void report(), intervalMs);
  };
  await report();
}
