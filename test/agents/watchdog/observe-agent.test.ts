import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, test } from 'vitest';
import { DockerAbsences } from '../../../src/agents/watchdog/docker-absence.js';
import { observeAgent } from '../../../src/agents/watchdog/observe-agent.js';
import { StartProgress } from '../../../src/agents/watchdog/start-progress.js';
import type { AgentContainers } from '../../../src/docker/containers/agent-containers.js';
import type { ContainerState } from '../../../src/docker/containers/container-view.js';

const seen = (state: Partial<ContainerState>, port = 1, absences?: DockerAbsences) => {
  // Only the parts that observeAgent uses.
  const containers = {
    inspect: () => Promise.resolve({ id: 'c', status: 'exited', ...state }),
  } as unknown as AgentContainers;
  const progress = new StartProgress(containers);
  return observeAgent({ containers, progress, ...(absences && { absences }) }, 'a', port);
};

test.each([
  [0, 'exit'],
  [128, 'exit'],
  [129, 'kill'],
  [137, 'kill'],
])('a container with exit code %i counts as ended by %s', async (exitCode, death) => {
  expect(await seen({ exitCode })).toMatchObject({
    health: 'stopped',
    death,
    reason: `The container ended with exit code ${exitCode}`,
  });
});

test('a container that ran out of memory counts as oom, not as killed', async () => {
  expect(await seen({ exitCode: 137, oomKilled: true })).toMatchObject({ death: 'oom' });
});

test("a container's end within an absence of Docker is marked, and no other end is", async () => {
  const absences = new DockerAbsences();
  const endedAt = Date.now() - 60_000;
  const finishedAt = new Date(endedAt).toISOString();
  const now = () => seen({ exitCode: 255, finishedAt }, 1, absences);
  expect(await now()).not.toHaveProperty('away');
  absences.ended(0, endedAt - 1);
  expect(await now()).not.toHaveProperty('away');
  // Docker answers before its events are followed again.
  absences.began(endedAt - 1_000);
  absences.began(endedAt + 1_000);
  expect(await now()).toMatchObject({ away: { from: endedAt - 1_000, endedAt } });
  absences.ended(endedAt - 2_000);
  expect(await now()).toMatchObject({ away: { from: endedAt - 2_000, endedAt } });
  expect(await seen({ exitCode: 255 }, 1, absences)).not.toHaveProperty('away');
});

test.each(['paused', 'restarting', 'dead'] as const)(
  'a %s container is unhealthy and has not ended',
  async (status) => {
    const observation = await seen({ status });
    expect(observation).toMatchObject({
      health: 'unhealthy',
      reason: `The container is ${status}`,
    });
    expect(observation).not.toHaveProperty('death');
  },
);

test('a running container past its start time is unhealthy if its gateway reports that', async () => {
  const gateway = createServer((_, response) => response.writeHead(503).end());
  await once(gateway.listen(0, '127.0.0.1'), 'listening');
  const { port } = gateway.address() as AddressInfo; // a TCP address is never a string
  const startedAt = new Date(Date.now() - 3_600_000).toISOString();
  expect(await seen({ status: 'running', startedAt }, port)).toMatchObject({
    health: 'unhealthy',
    reason: 'The gateway answers its health check with 503',
  });
  gateway.close();
  gateway.closeAllConnections();
});
