import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, test } from 'vitest';
import { observeAgent } from '../../../src/agents/watchdog/observe-agent.js';
import { StartProgress } from '../../../src/agents/watchdog/start-progress.js';
import type { AgentContainers } from '../../../src/docker/containers/agent-containers.js';
import type { ContainerState } from '../../../src/docker/containers/container-view.js';

const seen = (state: Partial<ContainerState>, port = 1) => {
  // Only the parts that observeAgent uses.
  const containers = {
    inspect: () => Promise.resolve({ id: 'c', status: 'exited', ...state }),
  } as unknown as AgentContainers;
  return observeAgent({ containers, progress: new StartProgress(containers) }, 'a', port);
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

test('a running container past its start time is unhealthy if its gateway says so', async () => {
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
