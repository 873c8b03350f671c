import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { FakeAgent } from './support/fake-agent.js';
import { refuse } from './support/misbehaviours.js';
import { RUNNING, WorkflowLab } from './support/workflow-lab.js';

/** What an agent whose memory is missing is asked for, and cannot do. */
const NEEDING = ['start', 'restart', 'repair', 'configure', 'update', 'reset-memory'] as const;

/** What gives it another one. */
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

/** Its watchdog has left it alone. */
const LOST = { ...RUNNING, state: 'crash_loop' } as const;

const made = ({ steps }: FakeAgent) =>
  steps.filter((step) => /^(createVolume|makeVolume|createContainer|startContainer)$/.test(step));

describe('an agent whose memory is missing', () => {
  test.each(NEEDING)('is left alone after a %s, which fails', async (kind) => {
    const agent = forgetful();
    const supervisor = await lab.supervise(agent, { watchdog: RUNNING });
    // It was seen as it was before.
    agent.health = 'healthy';
    await agent.reached('watchHealth');
    await supervisor.request(kind, 'op');

    expect(await agent.end('op')).toBe('failed');
    expect(agent.finished[0]?.error).toContain('its memory is missing');
    expect(made(agent)).toEqual([]);
    await agent.went('crash_loop (memory_missing)');
  });

  test.each(GIVING)('gets one by %s, and runs', async (kind) => {
    const agent = forgetful().on('beginRelease', () => {
      agent.memoryIsThere = true;
      agent.health = 'healthy';
    });
    const supervisor = await lab.supervise(agent, { watchdog: LOST });
    await supervisor.request(kind, 'op');
    expect(await agent.end('op')).toBe('succeeded');
    await agent.went('running (healthy)');
    expect(made(agent)).toEqual(['makeVolume', 'createContainer', 'startContainer']);
    // There was nothing to put away.
    expect(agent.keptMemory).toBe(false);
  });

  test.each(GIVING)('is in error still when %s fails', async (kind) => {
    const agent = forgetful().on('makeVolume', refuse());
    const supervisor = await lab.supervise(agent, { watchdog: LOST });
    await supervisor.request(kind, 'op');
    expect(await agent.end('op')).toBe('failed');
    await agent.went('crash_loop (memory_missing)');
    expect(agent.steps).toContain('removeLeftovers');
  });

  test('runs again with the memory that somebody has put back', async () => {
    const agent = forgetful();
    const supervisor = await lab.supervise(agent, { watchdog: LOST });
    Object.assign(agent, { memoryIsThere: true, health: 'healthy' });
    await supervisor.request('start', 'op');
    expect(await agent.end('op')).toBe('succeeded');
    expect(agent.steps).not.toContain('createVolume');
  });
});

test('an agent that has its memory does not begin anew', async () => {
  const agent = lab.agent();
  const supervisor = await lab.supervise(agent, { watchdog: RUNNING });
  await supervisor.request('reset-empty', 'op');
  expect(await agent.end('op')).toBe('failed');
  expect(agent.finished[0]?.error).toContain('has its memory');
  expect(agent.steps).not.toContain('stopContainer');
  await agent.went('running (operation)');
});

test.each(['reset-memory', 'restore'] as const)(
  'the memory that a %s puts away is kept when it is there',
  async (kind) => {
    const agent = lab.agent();
    const supervisor = await lab.supervise(agent);
    await supervisor.request(kind, 'op');
    expect(await agent.end('op')).toBe('succeeded');
    expect(agent.keptMemory).toBe(true);
  },
);
