import type { Logger } from 'pino';
import { runtimeImages } from '../src/docker/containers/image-name.js';
import type { DockerHost } from '../src/docker/containers/docker-host.js';
import type { Database } from '../src/platform/database/database.js';
import type { RequestSeconds } from '../src/platform/http/request-seconds.js';
import { HostListener } from '../src/agents/hosts/host-listener.js';
import { LocalHost } from '../src/agents/hosts/local-host.js';
import { SecretBox } from '../src/platform/secrets/secret-box.js';
import type { Settings } from '../src/settings.js';
import { builtHelper } from '../src/workspace-helper.js';
import type { HostLease } from './report-host.js';
import { untilAborted } from './run-together.js';

interface ServeHost {
  readonly settings: Settings;
  readonly database: Database;
  readonly docker: DockerHost;
  readonly lease: Pick<HostLease, 'held'>;
  readonly log: Logger;
  readonly requests?: RequestSeconds | undefined;
  /** Loader of the program that accesses agents' workspaces; the build's program by default. */
  readonly helper?: () => Promise<string>;
}

/** Serves this host's agents to API processes elsewhere, if configured. @throws HostListenError */
export async function serveHost(
  { settings, database, docker, lease, log, requests, helper = builtHelper }: ServeHost,
  signal: AbortSignal,
): Promise<void> {
  const { listener: wanted } = settings.hosts;
  await lease.held(signal);
  if (!wanted || signal.aborted) return untilAborted(signal);
  const id = settings.agents.host;
  const secrets = new SecretBox(settings.secrets.keys);
  const host = new LocalHost({
    id,
    database,
    docker,
    secrets,
    helper,
    image: runtimeImages(settings.agents).usual,
    allow: settings.outbound.allow,
  });
  const { tls } = wanted;
  const agentsNetwork = settings.agents.subnetPool;
  const names = new Set([...settings.http.ownNames, new URL(wanted.url).hostname]);
  const noteRequest = requests?.of('host');
  const listener = new HostListener({
    id,
    host,
    secrets,
    names,
    agentsNetwork,
    tls,
    log,
    noteRequest,
  });
  await listener.listen(wanted.address, wanted.port);
  log.info({ at: wanted.url }, 'serving this host to API processes on other hosts');
  try {
    await untilAborted(signal);
  } finally {
    await listener.close();
    await docker.workspaces.close();
  }
}
