import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { openOperations } from '../../workflows/supervise-agent-messages.js';
import type { FakeAgent } from './support/fake-agent.js';
import { refuse } from './support/misbehaviours.js';
import { RUNNING, WorkflowLab } from './support/workflow-lab.js';

let lab: WorkflowLab;
beforeEach(async () => {
  lab = await WorkflowLab.open();
});
afterEach(() => lab?.close());

/** Fails this step permanently for the given number of times, then succeeds. */
const failing = (
  agent: FakeAgent,
  step: 'recordTransition' | 'beginOperation' | 'finishOperation',
  times: number,
) =>
  agent.on(step, () => {
    if (agent.steps.filter((taken) => taken === step).length <= times) return refuse()(1);
  });

const status = async (agent: FakeAgent) => {
  const handle = lab.environment.client.workflow.getHandle(`supervise-agent-${agent.ref.agentId}`);
  return (await handle.describe()).status.name;
};

describe('a supervisor that is created again', () => {
  test('a new supervisor counts the crashes stored in the database', async () => {
    const agent = lab.agent();
    const now = await lab.environment.currentTimeMs();
    agent.memory = { ...RUNNING, crashes: [now - 2_000, now - 1_000] };
    agent.health = 'stopped';
    await lab.superviseAgain(agent);
    await agent.went('degraded (exit)', 'crash_loop (exit)');
    expect(agent.containerSteps).toEqual([]);
  });

  test('a new supervisor does not repair an agent in a crash loop', async () => {
    const agent = lab.agent();
    agent.memory = { ...RUNNING, state: 'crash_loop' };
    agent.health = 'stopped';
    await lab.superviseAgain(agent);
    await lab.pass('1 hour');
    expect([agent.steps, agent.checks]).toEqual([['loadSupervisedState'], 0]);
  });

  test('a new supervisor does not count a crash twice', async () => {
    const agent = lab.agent().on('startContainer', () => {
      agent.health = 'healthy';
    });
    const crashed = (await lab.environment.currentTimeMs()) - 1_000;
    agent.memory = { ...RUNNING, state: 'degraded', crashes: [crashed] };
    agent.health = 'stopped';
    await lab.superviseAgain(agent);
    for (let minute = 0; minute < 3; minute++) await lab.pass('1 minute');
    await agent.went('repairing (exit)', 'running (repaired)');
    expect(agent.memory?.crashes).toEqual([crashed]);
  });

  test('a new supervisor keeps an agent stopped that was stopped after the start was requested', async () => {
    const agent = lab.agent();
    agent.desired = 'stopped';
    agent.health = 'stopped';
    await lab.superviseAgain(agent);
    await lab.pass('10 minutes');
    expect([agent.checks, agent.containerSteps]).toEqual([0, []]);
  });

  test('a new supervisor stops an agent that should be stopped but is not recorded as stopped', async () => {
    const agent = lab.agent();
    agent.desired = 'stopped';
    agent.memory = { ...RUNNING, state: 'degraded' };
    await lab.superviseAgain(agent);
    await agent.went('stopped (stopped)');
    await lab.pass('10 minutes');
    expect(agent.containerSteps).toEqual(['stopContainer']);
  });

  test('a new supervisor records the stop of an agent that Docker had refused to stop', async () => {
    const agent = lab.agent().on('stopContainer', refuse('LastingRefusalError'));
    agent.desired = 'stopped';
    agent.memory = { ...RUNNING, state: 'stopped' };
    const { handle } = await lab.superviseAgain(agent, 'dockerReturned');
    await agent.went('running (stop_refused)');
    await handle.terminate();
    agent.behave('stopContainer');
    await lab.superviseAgain(agent);
    await agent.went('running (stop_refused)', 'stopped (stopped)');
  });

  test('a new supervisor of a removed agent ends at once, even after a signal', async () => {
    const agent = lab.agent();
    agent.isGone = true;
    const supervisor = await lab.superviseAgain(agent, 'dockerReturned');
    await supervisor.ended();
    expect(agent.steps).toEqual(['loadSupervisedState']);
  });
});

describe('a supervisor', () => {
  test('a supervisor survives permanent failures of its records and slows down its retries', async () => {
    const agent = failing(lab.agent(), 'recordTransition', 20);
    await lab.supervise(agent);
    agent.health = 'unhealthy';
    for (let minute = 0; minute < 10; minute++) await lab.pass('1 minute');
    expect(await status(agent)).toBe('RUNNING');
    const tries = agent.steps.filter((step) => step === 'recordTransition').length;
    expect(tries).toBeGreaterThan(5);
    expect(tries).toBeLessThan(20);

    agent.on('killGateway', () => {
      agent.health = 'healthy';
    });
    for (let minute = 0; minute < 15; minute++) await lab.pass('1 minute');
    await agent.went('degraded (unhealthy)', 'repairing (unhealthy)', 'running (repaired)');
  });

  test('a supervisor runs an operation whose begin failed at first', async () => {
    const agent = failing(lab.agent(), 'beginOperation', 3);
    const supervisor = await lab.supervise(agent);
    await supervisor.request('stop', 'stop');
    await lab.pass('1 minute');
    expect(await agent.end('stop')).toBe('succeeded');
    expect(agent.begun).toEqual(['stop']);
  });

  test('a supervisor finishes an operation even if a stalled worker recorded a newer version', async () => {
    const agent = lab.agent();
    agent.on('finishOperation', () => {
      if (agent.memory?.version === 7) return;
      // As if the lost workflow task of the stalled worker recorded its state again.
      agent.memory = { ...RUNNING, state: 'starting', version: 7 };
      return refuse('SupersededError')(1);
    });
    const supervisor = await lab.supervise(agent);
    await supervisor.request('restart', 'restart');
    await agent.reached('finishOperation');
    expect(await supervisor.handle.query(openOperations)).toEqual(['restart']);
    await lab.pass('1 minute');
    expect(await agent.end('restart')).toBe('succeeded');
    expect([agent.begun, agent.memory]).toMatchObject([
      ['restart'],
      { state: 'running', version: 8 },
    ]);
    expect(await supervisor.handle.query(openOperations)).toEqual([]);
  });

  test('a supervisor skips an operation whose end cannot be recorded and runs the next operation', async () => {
    const agent = failing(lab.agent(), 'finishOperation', 5);
    const supervisor = await lab.supervise(agent);
    await supervisor.request('restart', 'first');
    await agent.reached('finishOperation');
    await supervisor.request('restart', 'second');
    await lab.pass('5 minutes');
    expect(await agent.end('second')).toBe('succeeded');
    expect(agent.finished.map(({ id }) => id)).toEqual(['second']);
  });

  test('a supervisor ends when cancelled, even after a failure', async () => {
    const agent = failing(lab.agent(), 'recordTransition', Number.POSITIVE_INFINITY);
    const supervisor = await lab.supervise(agent);
    agent.health = 'unhealthy';
    await lab.pass('3 minutes');
    await supervisor.handle.cancel();
    await expect(supervisor.ended()).rejects.toThrow();
    expect(await status(agent)).toBe('CANCELLED');
  });

  test('a supervisor with an older state than the database follows the database', async () => {
    const agent = lab.agent().on('recordTransition', refuse('SupersededError'));
    await lab.supervise(agent);
    agent.memory = { ...RUNNING, version: 7, state: 'stopped' };
    agent.desired = 'stopped';
    agent.health = 'stopped';
    await lab.pass('5 minutes');
    await agent.reached('loadSupervisedState');
    await lab.pass('1 hour');
    expect([agent.containerSteps, agent.states]).toEqual([[], []]);
  });

  test('a supervisor ends and creates nothing when its agent was removed', async () => {
    const agent = lab.agent().on('watchHealth', refuse('AgentGoneError'));
    const supervisor = await lab.supervise(agent);
    agent.isGone = true;
    await supervisor.ended();
    expect(agent.containerSteps).toEqual([]);
  });

  test('a supervisor rereads the desired state when a check is requested', async () => {
    const agent = lab.agent();
    const supervisor = await lab.supervise(agent);
    await agent.reached('watchHealth');
    agent.desired = 'stopped';
    await supervisor.checkNow();
    await agent.reached('stopContainer');
    await lab.pass('1 minute');

    agent.desired = 'running';
    await supervisor.checkNow();
    await agent.reached('observeAgent');
    expect(agent.containerSteps).toEqual(['stopContainer']);
  });
});
