import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { dockerDaemonPlace } from '../../dev/docker/docker-daemon.js';
import { answers } from '../../dev/docker/find-docker.js';
import { findProgram } from '../../dev/processes/find-program.js';
import { containerName } from '../../src/containers/container-spec.js';
import { connectDocker } from '../../src/containers/docker-client.js';
import { ensureTestImage } from '../agent-image/ensure-test-image.js';
import { Place, survivors } from '../dev/launcher.js';
import { RUNNING } from './platform.js';
import { until } from '../support/until.js';

const run = promisify(execFile);
const KEY = 'key-of-the-test';
/** The name under which the engine gets the tests' image, once it is there. */
const IMAGE = { repo: 'agent-platform-test/agent', tag: 'own-engine' };

/** A network of its own keeps the engine that is started here from disturbing another one. */
const network = `aps-${randomBytes(4).toString('hex')}`;
const inNetwork = ['nsenter', `--net=/run/netns/${network}`];

const possible =
  process.platform === 'linux' &&
  process.getuid?.() === 0 &&
  !(await answers('unix:///var/run/docker.sock')) &&
  (await Promise.all(['dockerd', 'ip', 'nsenter', 'curl'].map(findProgram))).every(Boolean);

let place: Place;
beforeAll(async () => {
  place = await Place.make();
  if (possible) {
    await run('ip', ['netns', 'add', network]);
    await run('ip', ['-n', network, 'link', 'set', 'lo', 'up']);
  }
});
afterAll(async () => {
  await place?.close();
  if (possible) await run('ip', ['netns', 'delete', network]);
});

test.runIf(possible)(
  'an engine that npm start has started ends with it, and its agents come back with the next start',
  async () => {
    const { host } = dockerDaemonPlace(path.join(place.dataDir, 'docker'));
    const docker = connectDocker(host);
    const start = async () => {
      const launcher = place.start(
        {
          DOCKER_HOST: '',
          MANAGE_DOCKER: 'auto',
          AGENT_RUNTIME_IMAGE: `${IMAGE.repo}:${IMAGE.tag}`,
          INTERNAL_API_KEY: KEY,
        },
        inNetwork,
      );
      await launcher.printed(RUNNING, 180_000);
      return launcher;
    };

    const first = await start();
    expect(first.output).toContain('Starting a Docker engine of our own');
    expect(first.output).toContain(`export DOCKER_HOST=${host}\n`);
    await docker.getImage(await ensureTestImage(docker)).tag(IMAGE);
    const { id } = await call('POST', '/api/agents', '{"name":"survivor"}');
    await running(id);
    const before = await docker.getContainer(containerName(id)).inspect();
    const processes = await place.processes();
    expect(processes.map(({ name }) => name)).toContain('docker');

    first.kill('SIGINT');
    expect(await first.ended).toBe(0);
    expect(first.output).toContain('Stopping the agents and the Docker engine');
    expect(first.output).not.toContain('could not be stopped');
    expect(await survivors(processes)).toEqual([]);
    expect(await answers(host)).toBe(false);

    const second = await start();
    await running(id);
    const after = await docker.getContainer(containerName(id)).inspect();
    expect(after.Id).toBe(before.Id);
    expect(after.State.StartedAt).not.toBe(before.State.StartedAt);
    await call('DELETE', `/api/agents/${id}`);
    await until(async () => (await docker.listContainers({ all: true })).length === 0);
    second.kill('SIGINT');
    expect(await second.ended).toBe(0);
  },
  480_000,
);

/** It says that it runs, and its container answers that it does. */
async function running(id: string): Promise<void> {
  await until(async () => {
    const agent = await call('GET', `/api/agents/${id}`);
    if (agent.status !== 'active') return false;
    const docker = connectDocker(dockerDaemonPlace(path.join(place.dataDir, 'docker')).host);
    const { State: state } = await docker.getContainer(containerName(id)).inspect();
    return state.Running;
  });
}

/** From within that network, where alone the platform listens. */
async function call(
  method: string,
  at: string,
  body?: string,
): Promise<{ id: string; status: string }> {
  const [command = '', ...args] = inNetwork;
  const { stdout } = await run(command, [
    ...args,
    ...['curl', '-sS', '--max-time', '30', '-X', method],
    ...['-H', `authorization: Bearer ${KEY}`, '-H', 'content-type: application/json'],
    ...(body === undefined ? [] : ['-d', body]),
    `http://127.0.0.1:${place.backendPort}${at}`,
  ]);
  return JSON.parse(stdout);
}
