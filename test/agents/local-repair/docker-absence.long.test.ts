import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { connectDocker } from '../../../src/docker/containers/docker-client.js';
import { containerName } from '../../../src/docker/containers/container-spec.js';
import { testPlatform, type TestPlatform, type TestUser } from '../../support/platform.js';
import { startPostgres } from '../../support/postgres.js';
import { startTcpProxy, type TcpProxy } from '../../support/tcp-proxy.js';
import { until } from '../../support/until.js';
import { firstCheckIsMade, shownBy } from '../../support/watchdog.js';

const engine = process.env.DOCKER_HOST ?? 'unix:///var/run/docker.sock';
/** Made before the variable names the proxy, which the library would prefer. */
const direct = connectDocker(engine);

/** Milliseconds for which the container is down while Docker does not answer. */
const AWAY_MS = 3_000;

let server: Awaited<ReturnType<typeof startPostgres>>;
let docker: TcpProxy;
let postgres: TcpProxy;
let on: TestPlatform;
let user: TestUser;

beforeAll(async () => {
  server = await startPostgres();
  const url = new URL(server.url);
  [docker, postgres] = await Promise.all([
    startTcpProxy(engine),
    startTcpProxy(`tcp://${url.host}`),
  ]);
  url.host = `127.0.0.1:${postgres.port}`;
  Object.assign(process.env, { DOCKER_HOST: docker.host, TEST_POSTGRES_URL: url.href });
  on = await testPlatform({
    env: { WATCHDOG_CHECK_INTERVAL: '1s' },
    // The supervisor sees the ended container before the host takes over, and cannot record its observation.
    localRepair: {
      probe: 300,
      away: 20_000,
      again: 1_000,
      notify: 15_000,
      pause: 300,
      grace: 1_000,
    },
  });
  user = await on.signUp('network');
});
afterAll(async () => {
  docker?.mend();
  postgres?.mend();
  await on?.close();
  await Promise.all([docker?.close(), postgres?.close()]);
  await server?.stop();
});

test('counts no crash for an end within an absence of Docker while PostgreSQL is unavailable', async () => {
  const id = await on.runningAgent(user);
  const shown = shownBy(on, user);
  await firstCheckIsMade(on, id);
  const container = direct.getContainer(containerName(id));
  const { State: before } = await container.inspect();
  postgres.cut();
  docker.cut();
  await container.kill();
  await delay(AWAY_MS);
  docker.mend();
  await until(async () => {
    const { State: now } = await container.inspect();
    return now.Running && now.StartedAt !== before.StartedAt;
  });
  await until(() => Promise.resolve(on.logged.some((line) => line.includes('"healthy"'))));
  postgres.mend();

  await shown.change(id, ({ cause }) => cause === 'host_returned');
  await shown.becomes(id, 'running');
  const { body } = await on.backend(user, 'GET', `/api/agents/${id}`);
  expect(body).toMatchObject({ status: 'active', watchdog: { crashesInWindow: 0 } });
  const causes = (await shown.life(id)).map(([, , cause]) => cause);
  expect(new Set(causes)).toEqual(new Set(['host_returned', 'healthy']));
});
