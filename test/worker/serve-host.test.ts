import { connect } from 'node:net';
import { once } from 'node:events';
import { expect, test } from 'vitest';
import { freePort } from '../../dev/ports.js';
import { DockerHost } from '../../src/docker/containers/docker-host.js';
import { Database } from '../../src/platform/database/database.js';
import { loadSettings } from '../../src/settings.js';
import { serveHost } from '../../worker/serve-host.js';
import { keptLog, testEnvironment } from '../support/platform-environment.js';
import { until } from '../support/until.js';

const NOWHERE = 'postgres://nobody@127.0.0.1:1/nothing';

test('a host is served only once its name is leased to this engine', async () => {
  const port = await freePort();
  const settings = loadSettings(
    testEnvironment({ DATABASE_URL: NOWHERE, HOST_LISTEN: `127.0.0.1:${port}` }),
  );
  const database = new Database(NOWHERE, { maxConnections: 1 });
  const docker = new DockerHost({ dockerHost: 'unix:///nowhere/docker.sock' });
  let take = () => {};
  const taken = new Promise<void>((resolve) => (take = resolve));
  const lease = { held: () => taken };
  const end = new AbortController();
  const { log } = keptLog();
  const serving = serveHost({ settings, database, docker, lease, log }, end.signal);
  const early = await isListening(port);
  take();
  await until(() => isListening(port));
  end.abort();
  await serving;
  await database.close();
  expect([early, await isListening(port)]).toEqual([false, false]);
});

async function isListening(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1');
  try {
    await once(socket, 'connect');
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}
