import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chmod, readFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import type Docker from 'dockerode';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { dockerDaemonPlace } from '../../dev/docker/docker-daemon.js';
import { answers } from '../../dev/docker/find-docker.js';
import { chooseUserNamespaces } from '../../dev/docker/user-namespaces.js';
import { findProgram } from '../../dev/processes/find-program.js';
import { containerName, STATE_DIRECTORY } from '../../src/docker/containers/container-spec.js';
import { connectDocker } from '../../src/docker/containers/docker-client.js';
import { ensureTestImage } from '../agent-image/ensure-test-image.js';
import { Place, RUNNING, survivors } from '../dev/launcher.js';
import { runInContainer } from '../support/run-in-container.js';
import { until } from '../support/until.js';

const run = promisify(execFile);
const KEY = 'key-of-the-test';
/** Name of the tests' image in the engine, once the engine has started. */
const IMAGE = { repo: 'agent-platform-test/agent', tag: 'own-engine' };

/** A separate network, so that the engine started here does not disturb another. */
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
  // Containers run as other users, which must be able to traverse the path to the data folder.
  await chmod(path.dirname(place.dataDir), 0o711);
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
  'an engine started by npm start ends with it, and its agents return with the next start',
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

    const { on: canKeepApart } = await chooseUserNamespaces(path.join(place.dataDir, 'docker'));
    const first = await start();
    expect(first.output).toContain('Starting a Docker engine: this is root on Linux');
    expect(first.output).toContain(`export DOCKER_HOST=${host}\n`);
    await docker.getImage(await ensureTestImage(docker)).tag(IMAGE);
    const { id } = await call('POST', '/api/agents', '{"name":"survivor"}');
    await running(id);
    const note = `${STATE_DIRECTORY}/note`;
    const write = `require('fs').writeFileSync('${note}', 'kept', { mode: 0o600 })`;
    await runInContainer(docker, containerName(id), write);
    // The memory is archived and then copied from the archive.
    await operate(id, 'reset-memory');
    const { archives = [] } = await call('GET', `/api/agents/${id}/archives`);
    await operate(id, 'restore', { archiveId: archives[0]?.id });
    await running(id);
    const before = await docker.getContainer(containerName(id)).inspect();
    const status = await readFile(`/proc/${before.State.Pid}/status`, 'utf8');
    const hostsUid = Number(/^Uid:\s+(\d+)/m.exec(status)?.[1]);
    expect(hostsUid > 65_535).toBe(canKeepApart);
    expect(await contentsOf(docker, id, note)).toBe('1000 1000 600 kept');
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
    expect(await contentsOf(docker, id, note)).toBe('1000 1000 600 kept');
    await call('DELETE', `/api/agents/${id}`);
    await until(async () => (await docker.listContainers({ all: true })).length === 0);
    second.kill('SIGINT');
    expect(await second.ended).toBe(0);
  },
  480_000,
);

/** Runs an operation on the agent and waits for its success. */
async function operate(id: string, what: string, body = {}): Promise<void> {
  const asked = await call('POST', `/api/agents/${id}/${what}`, JSON.stringify(body));
  await until(async () => {
    const { operations = [] } = await call('GET', `/api/agents/${id}/operations`);
    return operations.some((each) => each.id === asked.operationId && each.status === 'succeeded');
  });
}

/** Returns owner, mode and contents of a file as visible in the agent's container. */
const contentsOf = (docker: Docker, id: string, file: string): Promise<string> =>
  runInContainer(
    docker,
    containerName(id),
    `const fs = require('fs');
     const { uid, gid, mode } = fs.statSync('${file}');
     const text = fs.readFileSync('${file}', 'utf8');
     process.stdout.write([uid, gid, (mode & 0o777).toString(8), text].join(' '))`,
  );

/** Waits until the agent is active and its container runs. */
async function running(id: string): Promise<void> {
  await until(async () => {
    const agent = await call('GET', `/api/agents/${id}`);
    if (agent.status !== 'active') return false;
    const docker = connectDocker(dockerDaemonPlace(path.join(place.dataDir, 'docker')).host);
    const { State: state } = await docker.getContainer(containerName(id)).inspect();
    return state.Running;
  });
}

interface Answer {
  readonly id: string;
  readonly status: string;
  readonly operationId?: string;
  readonly archives?: readonly { readonly id: string }[];
  readonly operations?: readonly { readonly id: string; readonly status: string }[];
}

/** Makes an API call from within the network, the only place where the platform listens. */
async function call(method: string, at: string, body?: string): Promise<Answer> {
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
