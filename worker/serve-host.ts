import type { Logger } from 'pino';
import type { DockerHost } from '../src/containers/docker-host.js';
import type { Database } from '../src/database/database.js';
import { HostListener } from '../src/hosts/host-listener.js';
import { LocalHost } from '../src/hosts/local-host.js';
import { SecretBox } from '../src/secrets/secret-box.js';
import type { Settings } from '../src/settings.js';
import type { HostLease } from './report-host.js';
import { untilAborted } from './run-together.js';

interface ServeHost {
  readonly settings: Settings;
  readonly database: Database;
  readonly docker: DockerHost;
  readonly lease: Pick<HostLease, 'held'>;
  readonly log: Logger;
}

/**
 * Serves chat, logs and statistics of this host to API processes elsewhere, where that is wanted, until
 * the signal aborts.
 *
 * @throws HostListenError
 */
export async function serveHost(
  { settings, database, docker, lease, log }: ServeHost,
  signal: AbortSignal,
): Promise<void> {
  const { listener: wanted } = settings.hosts;
  await lease.held(signal);
  if (!wanted || signal.aborted) return untilAborted(signal);
  const id = settings.agents.host;
  const secrets = new SecretBox(settings.secrets.keys);
  const host = new LocalHost({ id, database, docker, secrets });
  const agentsNetwork = settings.agents.subnetPool;
  const names = new Set([...settings.http.ownNames, new URL(wanted.url).hostname]);
  const listener = new HostListener({ id, host, secrets, names, agentsNetwork, log });
  await listener.listen(wanted.address, wanted.port);
  log.info({ at: wanted.url }, 'this host is served to API processes elsewhere');
  try {
    await untilAborted(signal);
  } finally {
    await listener.close();
  }
}
