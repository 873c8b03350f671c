import { randomBytes } from 'node:crypto';
import path from 'node:path';
import type { LauncherSettings } from '../dev/settings.js';
import { obtainDocker } from '../dev/docker/obtain-docker.js';
import { startPostgres } from '../dev/postgres/postgres.js';
import { obtainRedisServer } from '../dev/redis.js';
import { findTemporalCli, findTemporalTestServer } from '../dev/temporal/temporal-binary.js';
import { startTemporal } from '../dev/temporal/temporal.js';
import { freePort } from '../dev/ports.js';
import { say, step } from '../dev/report.js';

/**
 * Starts the engines that all test files share, with all state in `folder`.
 *
 * @param stops gets what stops each, also when a later one fails to start.
 * @returns the environment in which the tests find them.
 */
export async function startTestEngines(
  folder: string,
  { launcher, process: { cacheDir } }: LauncherSettings,
  stops: (() => Promise<void>)[],
): Promise<Record<string, string>> {
  const runDir = path.join(folder, 'run');
  const postgres = await step('Starting PostgreSQL', async () =>
    startPostgres({
      dataDir: path.join(folder, 'postgres'),
      runDir,
      port: await freePort(),
      password: randomBytes(16).toString('hex'),
      // The data is thrown away, so nothing is lost by not waiting for the disk.
      settings: { fsync: 'off', max_connections: '300' },
    }),
  );
  stops.push(() => postgres.stop());

  const cli = await findTemporalCli(cacheDir);
  const testServer = await findTemporalTestServer(cacheDir);
  const temporal = await step('Starting Temporal', async () =>
    startTemporal({ cli, runDir, port: await freePort(), uiPort: await freePort() }),
  );
  stops.push(() => temporal.stop());

  const docker = await obtainDocker({
    dataDir: path.join(folder, 'docker'),
    runDir,
    manage: launcher.manageDocker,
  });
  if (docker.host === undefined) say(`${docker.missing} Tests that need containers will fail.`);
  else if (docker.own) stops.push(() => docker.own?.stop() ?? Promise.resolve());

  const redis = await obtainRedisServer();
  return {
    TEST_POSTGRES_URL: postgres.superuserUrl,
    TEST_TEMPORAL_ADDRESS: temporal.address,
    TEST_TEMPORAL_UI_URL: temporal.uiUrl,
    TEMPORAL_CLI_PATH: cli,
    TEMPORAL_TEST_SERVER_PATH: testServer,
    CACHE_DIR: cacheDir,
    ...(docker.host === undefined ? {} : { DOCKER_HOST: docker.host }),
    ...(redis === undefined ? {} : { TEST_REDIS_SERVER: redis }),
  };
}
