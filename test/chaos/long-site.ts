import path from 'node:path';
import { Client, Connection } from '@temporalio/client';
import { makeFolder } from '../../bench/support/folder.js';
import { startOwnPostgres } from '../../bench/support/own-postgres.js';
import { keepRunning } from '../../dev/keep-running.js';
import { freePort } from '../../dev/ports.js';
import { readRecord } from '../../dev/processes/process.js';
import { loadSecrets } from '../../dev/secrets.js';
import { startService } from '../../dev/services.js';
import { readSettings } from '../../dev/settings.js';
import { findTemporalCli } from '../../dev/temporal/temporal-binary.js';
import { startTemporal } from '../../dev/temporal/temporal.js';
import { Database } from '../../src/platform/database/database.js';
import { ensureTestImage } from '../agent-image/ensure-test-image.js';
import { varyTestImage } from '../agent-image/vary-test-image.js';
import { startTcpProxy, type TcpProxy } from '../support/tcp-proxy.js';
import { CarefulClient } from './careful-client.js';
import { FarHost } from './far-host.js';
import { HOSTS, SERVICES, type HostName, type Service } from './long-plan.js';
import type { Site } from './site.js';

export const AGENT_PORTS = { first: 22_100, last: 22_299 };

/** Settings that differ from the product's, so that a round is shorter. */
export const CHECK_INTERVAL_MS = 10_000;
export const HASTE = { WATCHDOG_CHECK_INTERVAL: `${CHECK_INTERVAL_MS}ms` };

/** The network paths from one process to the services that it uses. */
export type Ways = Readonly<Record<Service, TcpProxy>>;

/** A platform on two hosts, in which every network path and process can fail. */
export interface LongSite extends Site {
  readonly hosts: Readonly<Record<HostName, FarHost>>;
  readonly ways: Readonly<Record<'api' | HostName, Ways>>;
  readonly versions: { readonly good: string; readonly broken: string; readonly slow: string };
}

/**
 * Starts a platform on two hosts.
 * @param slowSeconds for which a slow image occupies a processor before it listens.
 */
export async function makeLongSite(
  slowSeconds: number,
  atEnd: (cleanup: () => Promise<void> | void) => void,
): Promise<LongSite> {
  const folder = await makeFolder(atEnd);
  const runDir = path.join(folder, 'run');
  const secrets = loadSecrets(folder);
  const postgres = await startOwnPostgres(folder, atEnd);
  const temporal = await startTemporal({
    cli: await findTemporalCli(readSettings(process.env)),
    runDir,
    port: await freePort(),
    uiPort: await freePort(),
    databaseFile: path.join(folder, 'temporal.db'),
  });
  atEnd(() => temporal.stop());

  const waysFrom = async (address: string): Promise<Ways> => {
    const ways = {
      postgres: await startTcpProxy(`tcp://${new URL(postgres.servingUrl).host}`, address),
      temporal: await startTcpProxy(`tcp://${temporal.address}`, address),
    };
    for (const service of SERVICES) atEnd(() => ways[service].close());
    return ways;
  };
  const common = {
    ...process.env,
    ENCRYPTION_KEY: secrets.encryptionKey,
    INTERNAL_API_KEY: secrets.internalApiKey,
    AGENT_EGRESS: 'open',
    AGENT_PORT_RANGE: `${AGENT_PORTS.first}-${AGENT_PORTS.last}`,
    AGENT_HOST_CAPACITY: '100',
    AGENT_SUBNET_POOL: '10.128.0.0/16',
    AGENT_AI_HOST: '127.0.0.1', // these agents make no AI requests
    TRUSTED_PROXIES: '127.0.0.1',
    ...HASTE,
  };
  const by = (ways: Ways) => {
    const url = new URL(postgres.servingUrl);
    url.host = new URL(ways.postgres.host).host;
    return { DATABASE_URL: url.href, TEMPORAL_ADDRESS: new URL(ways.temporal.host).host };
  };

  const startHost = async (name: HostName): Promise<FarHost> => {
    const host = await FarHost.start(name, HOSTS.indexOf(name), path.join(folder, name));
    atEnd(() => host.stop());
    return host;
  };
  const hosts = { a: await startHost('a'), b: await startHost('b') };
  const images = await Promise.all(
    HOSTS.map(async (name) => {
      const { docker } = hosts[name];
      const image = await ensureTestImage(docker);
      const vary = (tag: string, instruction: string) =>
        varyTestImage(docker, image, tag, [instruction]);
      const good = await vary('next', 'LABEL chaos=next');
      const broken = await vary('broken', 'ENV EXIT_AT_START=3');
      const slow = await vary('slow', `ENV START_WORK_MS=${slowSeconds * 1_000}`);
      return { image, versions: { good, broken, slow } };
    }),
  );
  const [ofAll] = images; // equal on both hosts
  if (!ofAll) throw new TypeError('There is no host');
  const agentImages = {
    AGENT_RUNTIME_IMAGE: ofAll.image,
    AGENT_VERSIONS: Object.values(ofAll.versions).join(','),
  };
  const ways = {
    api: await waysFrom('127.0.0.1'),
    a: await waysFrom(hosts.a.hubAddress),
    b: await waysFrom(hosts.b.hubAddress),
  };
  for (const name of HOSTS) {
    await hosts[name].startWorker({
      ...common,
      ...by(ways[name]),
      AGENT_HOST: name,
      DATA_DIR: path.join(folder, name),
      ...agentImages,
      DOCKER_HOST: hosts[name].dockerHost,
    });
  }
  const backendPort = await freePort();
  const api = await keepRunning('api', async () =>
    startService({
      name: 'api',
      runDir,
      env: {
        ...common,
        ...by(ways.api),
        AGENT_HOST: HOSTS[0],
        ...agentImages,
        DOCKER_HOST: hosts[HOSTS[0]].dockerHost,
        DATA_DIR: folder,
        WEB_PORT: String(await freePort()),
        BACKEND_PORT: String(backendPort),
        AGENT_AI_PORT: String(await freePort()),
        SUMMARIZER_PORT: '0',
        METRICS_PORT: '0',
      },
    }),
  );
  atEnd(() => api.stop());
  const database = new Database(postgres.servingUrl, { maxConnections: 4 });
  atEnd(() => database.close());
  const connection = Connection.lazy({ address: temporal.address });
  atEnd(() => connection.close());
  return {
    hosts,
    ways,
    database,
    temporal: new Client({ connection }),
    api: new CarefulClient(`http://127.0.0.1:${backendPort}`, secrets.internalApiKey),
    versions: ofAll.versions,
    async livingPidOf(part) {
      const host = HOSTS.find((name) => part === `worker-${name}`);
      if (host) return hosts[host].workerPid();
      return (await readRecord(runDir, part))?.pid;
    },
  };
}
