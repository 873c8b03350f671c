import { randomBytes } from 'node:crypto';
import path from 'node:path';
import type { LauncherSettings } from '../dev/settings.js';
import { obtainDocker } from '../dev/docker/obtain-docker.js';
import { startPostgres } from '../dev/postgres/postgres.js';
import { findTemporalCli, findTemporalTestServer } from '../dev/temporal/temporal-binary.js';
import { startTemporal } from '../dev/temporal/temporal.js';
import { freePort } from '../dev/ports.js';
import { obtainChromium, obtainRedisServer } from '../dev/test-programs.js';
import { say, step } from '../dev/report.js';

export interface TestServerOptions {
  /** Folder of the servers' state. */
  readonly folder: string;
  readonly settings: LauncherSettings;
  readonly withDocker: boolean;
}

/**
 * Starts the servers that all test files share, concurrently.
 *
 * @param stops gets the stop functions, also when a later server fails to start.
 * @returns the environment with which the tests find the servers.
 */
export async function startTestServers(
  { folder, settings, withDocker }: TestServerOptions,
  stops: (() => Promise<void>)[],
): Promise<Record<string, string>> {
  const runDir = path.join(folder, 'run');
  const { cacheDir } = settings.process;
  const parts = await Promise.all([
    startTestPostgres(folder, runDir, stops),
    startTestTemporal(settings, runDir, stops),
    withDocker ? startTestDocker(folder, runDir, settings.launcher.manageDocker, stops) : {},
    obtainRedisServer().then((redis) => (redis === undefined ? {} : { TEST_REDIS_SERVER: redis })),
    obtainChromium().then((chromium) =>
      chromium === undefined ? {} : { TEST_CHROMIUM: chromium },
    ),
  ]);
  return Object.assign({ CACHE_DIR: cacheDir }, ...parts) as Record<string, string>;
}

async function startTestPostgres(folder: string, runDir: string, stops: (() => Promise<void>)[]) {
  const postgres = await step('Starting PostgreSQL', async () =>
    startPostgres({
      dataDir: path.join(folder, 'postgres'),
      runDir,
      port: await freePort(),
      password: randomBytes(16).toString('hex'),
      // The data is discarded afterwards: waiting for the disk, replication and vacuums are useless.
      settings: {
        fsync: 'off',
        full_page_writes: 'off',
        synchronous_commit: 'off',
        wal_level: 'minimal',
        max_wal_senders: '0',
        autovacuum: 'off',
        max_connections: '300',
      },
    }),
  );
  stops.push(() => postgres.stop());
  return { TEST_POSTGRES_URL: postgres.superuserUrl };
}

async function startTestTemporal(
  settings: LauncherSettings,
  runDir: string,
  stops: (() => Promise<void>)[],
) {
  const cli = await findTemporalCli(settings);
  const testServer = await findTemporalTestServer(settings);
  const temporal = await step('Starting Temporal', async () =>
    startTemporal({ cli, runDir, port: await freePort(), uiPort: await freePort() }),
  );
  stops.push(() => temporal.stop());
  return {
    TEST_TEMPORAL_ADDRESS: temporal.address,
    TEST_TEMPORAL_UI_URL: temporal.uiUrl,
    TEMPORAL_CLI_PATH: cli,
    TEMPORAL_TEST_SERVER_PATH: testServer,
  };
}

async function startTestDocker(
  folder: string,
  runDir: string,
  manage: boolean,
  stops: (() => Promise<void>)[],
) {
  const docker = await obtainDocker({
    dataDir: path.join(folder, 'docker'),
    runDir,
    manage,
  });
  if (docker.host === undefined) {
    say(`${docker.missing} Tests that need containers will fail.`);
    return {};
  }
  const { own } = docker;
  if (own) stops.push(() => own.stop());
  return { DOCKER_HOST: docker.host };
}
