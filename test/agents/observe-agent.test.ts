import { expect, test } from 'vitest';
import { observeAgent } from '../../src/agents/observe-agent.js';
import { StartProgress } from '../../src/agents/start-progress.js';
import type { AgentContainers } from '../../src/containers/agent-containers.js';
import type { ContainerState } from '../../src/containers/container-view.js';

const seen = (state: Partial<ContainerState>) => {
  // What is not asked for here is not there.
  const containers = {
    inspect: () => Promise.resolve({ id: 'c', status: 'exited', ...state }),
  } as unknown as AgentContainers;
  return observeAgent({ containers, progress: new StartProgress(containers) }, 'a', 1);
};

test.each([
  [0, 'exit'],
  [128, 'exit'],
  [129, 'kill'],
  [137, 'kill'],
])('a container that ended with %i has come to its end by %s', async (exitCode, death) => {
  expect(await seen({ exitCode })).toMatchObject({
    health: 'stopped',
    death,
    reason: `The container ended with exit code ${exitCode}`,
  });
});

test('one that ran out of memory has not been killed by somebody', async () => {
  expect(await seen({ exitCode: 137, oomKilled: true })).toMatchObject({ death: 'oom' });
});

test.each(['paused', 'restarting', 'dead'] as const)(
  'one that is %s is unhealthy, and has not ended',
  async (status) => {
    const observation = await seen({ status });
    expect(observation).toMatchObject({
      health: 'unhealthy',
      reason: `The container is ${status}`,
    });
    expect(observation).not.toHaveProperty('death');
  },
);
