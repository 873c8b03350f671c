import { randomUUID } from 'node:crypto';
import { ApplicationFailure } from '@temporalio/common';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type {
  PastTransition,
  WatchdogCause,
  WatchdogMemory,
  WatchdogState,
} from '../../src/types/watchdog.js';
import { RUNNING, WorkflowLab } from './support/workflow-lab.js';

let lab: WorkflowLab;
beforeEach(async () => {
  lab = await WorkflowLab.open();
});
afterEach(() => lab?.close());

/** Returns transitions that the agent's host made by itself, one a second. */
function madeByHost(
  from: number,
  ...changes: readonly (readonly [WatchdogState, WatchdogCause, Partial<WatchdogMemory>?])[]
): PastTransition[] {
  let memory = RUNNING;
  return changes.map(([state, cause, change], index) => {
    const made = { id: randomUUID(), from: memory.state, cause, reason: `because of ${cause}` };
    memory = { ...memory, ...change, state, since: from + index * 1_000 };
    return { ...made, memory };
  });
}

const shown = (past: readonly PastTransition[]) => past.map(({ id }) => id);

test('a repair by the host is recorded with its own time and the agent is watched again', async () => {
  const agent = lab.agent();
  const supervisor = await lab.supervise(agent);
  await agent.reached('watchHealth');
  const now = await lab.environment.currentTimeMs();
  const past = madeByHost(
    now - 60_000,
    ['degraded', 'kill', { crashes: [now - 60_000] }],
    ['repairing', 'kill', { repairAttempts: 1, lastRepair: now - 59_000 }],
    ['running', 'repaired'],
  );
  agent.reportedPast = past;
  await supervisor.checkNow();
  await agent.went('running (repaired)');
  // The last transition is the agent's current state and is recorded as such.
  expect(shown([...agent.past, ...agent.transitions])).toEqual(shown(past));
  expect(agent.memory).toMatchObject({ crashes: [now - 60_000], repairAttempts: 1 });
  await supervisor.inPhase('running');
  await agent.reached('watchHealth', 2);
  // Two more crashes make a loop, because crashes seen by the host count.
  for (const crash of [2, 3]) {
    agent.health = 'stopped';
    agent.on('startContainer', () => {
      agent.health = 'healthy';
    });
    await supervisor.containerEnded();
    if (crash === 2) await lab.pass('2 minutes');
  }
  await agent.went('crash_loop (exit)');
  expect(agent.containerSteps.filter((step) => step === 'killGateway')).toHaveLength(1);
});

test('an agent whose local repair was abandoned stays down until an operator starts it', async () => {
  const agent = lab.agent();
  const supervisor = await lab.supervise(agent);
  await agent.reached('watchHealth');
  const now = await lab.environment.currentTimeMs();
  agent.health = 'stopped';
  agent.reportedPast = madeByHost(now - 1_000, ['crash_loop', 'repair_failed']);
  await supervisor.checkNow();
  await agent.went('crash_loop (repair_failed)');
  await lab.pass('10 minutes');
  expect(agent.containerSteps).toEqual([]);
  await supervisor.inPhase('crash_loop');
});

test('a repair that the host has just made is not repeated', async () => {
  const agent = lab.agent();
  const supervisor = await lab.supervise(agent);
  await agent.reached('watchHealth');
  agent.on('killGateway', async () => {
    const now = await lab.environment.currentTimeMs();
    agent.health = 'healthy';
    agent.reportedPast = madeByHost(now, ['repairing', 'kill'], ['running', 'repaired']);
    throw ApplicationFailure.nonRetryable('it was repaired', 'RepairedLocallyError');
  });
  agent.health = 'stopped';
  await supervisor.containerEnded();
  await agent.went('running (repaired)');
  expect(agent.containerSteps).toEqual(['killGateway']);
  expect(agent.past.map(({ memory }) => memory.state)).toEqual(['repairing']);
  expect(agent.steps.filter((step) => step === 'recordPast')).toHaveLength(1);
});

test('an older transition by the host does not undo a newer operation', async () => {
  const agent = lab.agent();
  const supervisor = await lab.supervise(agent);
  await agent.reached('watchHealth');
  const before = (await lab.environment.currentTimeMs()) - 60_000;
  await supervisor.request('restart', 'restart');
  expect(await agent.end('restart')).toBe('succeeded');
  await agent.reached('watchHealth', 2);
  agent.reportedPast = madeByHost(before, ['degraded', 'kill', { crashes: [before] }]);
  await supervisor.checkNow();
  await agent.until('it is taken in', () => agent.past.length > 0);
  await lab.pass('5 minutes');
  expect(agent.memory).toMatchObject({ state: 'running', crashes: [] });
  await supervisor.inPhase('running');
});
