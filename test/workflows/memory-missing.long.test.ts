import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { FakeAgent } from './support/fake-agent.js';
import { refuse } from './support/misbehaviours.js';
import { RUNNING, WorkflowLab } from './support/workflow-lab.js';

/** Operations that fail while the agent's memory is missing. */
const NEEDING = ['start', 'restart', 'repair', 'configure', 'update', 'reset-memory'] as const;

/** Operations that replace the agent's memory. */
const GIVING = ['restore', 'reset-empty'] as const;

let lab: WorkflowLab;
beforeAll(async () => {
  lab = await WorkflowLab.open();
});
afterEach(() => lab.endSupervisors());
afterAll(() => lab?.close());

function forgetful(): FakeAgent {
  const agent = lab.agent();
  agent.memoryIsThere = false;
  agent.containerIsThere = false;
  agent.health = 'stopped';
  agent.death = 'gone';
  return agent;
}

/** Watchdog state of an agent that is no longer repaired. */
const LOST = { ...RUNNING, state: 'crash_loop' } as const;

const made = ({ steps }: FakeAgent) =>
  steps.filter((step) => /^(createVolume|makeVolume|createContainer|startContainer)$/.test(step));

describe('agent with missing memory', () => {
  test.each(NEEDING)('a %s fails, and the agent is not repaired', async (kind) => {
    const agent = forgetful();
    const supervisor = await lab.supervise(agent, { watchdog: RUNNING });
    // The last check still sees the agent healthy.
    agent.health = 'healthy';
    await agent.reached('watchHealth');
    await supervisor.request(kind, 'op');

    expect(await agent.end('op')).toBe('failed');
    expect(agent.finished[0]?.error).toContain('its memory is missing');
    expect(made(agent)).toEqual([]);
    await agent.went('crash_loop (memory_missing)');
  });

  test.each(GIVING)('the agent gets a new memory by %s, and runs', async (kind) => {
    const agent = forgetful().on('beginRelease', () => {
      agent.memoryIsThere = true;
      agent.health = 'healthy';
    });
    const supervisor = await lab.supervise(agent, { watchdog: LOST });
    await supervisor.request(kind, 'op');
    expect(await agent.end('op')).toBe('succeeded');
    await agent.went('running (healthy)');
    expect(made(agent)).toEqual(['makeVolume', 'createContainer', 'startContainer']);
    // No previous memory exists to keep.
    expect(agent.keptMemory).toBe(false);
  });

  test.each(GIVING)('the agent stays in error if %s fails', async (kind) => {
    const agent = forgetful().on('makeVolume', refuse());
    const supervisor = await lab.supervise(agent, { watchdog: LOST });
    await supervisor.request(kind, 'op');
    expect(await agent.end('op')).toBe('failed');
    await agent.went('crash_loop (memory_missing)');
    expect(agent.steps).toContain('removeLeftovers');
  });

  test('the agent runs again once its memory was restored manually', async () => {
    const agent = forgetful();
    const supervisor = await lab.supervise(agent, { watchdog: LOST });
    Object.assign(agent, { memoryIsThere: true, health: 'healthy' });
    await supervisor.request('start', 'op');
    expect(await agent.end('op')).toBe('succeeded');
    expect(agent.steps).not.toContain('createVolume');
  });
});

test('refuses to replace the memory of an agent that still has one', async () => {
  const agent = lab.agent();
  const supervisor = await lab.supervise(agent, { watchdog: RUNNING });
  await supervisor.request('reset-empty', 'op');
  expect(await agent.end('op')).toBe('failed');
  expect(agent.finished[0]?.error).toContain('has its memory');
  expect(agent.steps).not.toContain('stopContainer');
  await agent.went('running (operation)');
});

test.each(['reset-memory', 'restore'] as const)(
  'a %s keeps the previous memory if it exists',
  async (kind) => {
    const agent = lab.agent();
    const supervisor = await lab.supervise(agent);
    await supervisor.request(kind, 'op');
    expect(await agent.end('op')).toBe('succeeded');
    expect(agent.keptMemory).toBe(true);
  },
);
