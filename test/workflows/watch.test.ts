import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { ContainerHealth } from '../../src/agents/observation.js';
import { BRING_UP, type FakeAgent } from './support/fake-agent.js';
import { Gate } from './support/gate.js';
import { refuse, untilCancelled } from './support/misbehaviours.js';
import { WorkflowLab, type Supervised } from './support/workflow-lab.js';

const REMOVAL = ['removeContainer', 'removeNetwork', 'removeVolume'];
/** Longer than the time between two checks, and than the pause after a revival that failed. */
const A_WHILE = '3 minutes';

// A server for each test: it stops skipping time once a workflow was ended in the middle of a step.
let lab: WorkflowLab;
beforeEach(async () => {
  lab = await WorkflowLab.open();
});
afterEach(() => lab?.close());

/** A supervisor that watches an agent that it knows as healthy. */
async function watched(agent: FakeAgent): Promise<Supervised> {
  const supervisor = await lab.supervise(agent);
  await agent.reached('watchHealth');
  return supervisor;
}

/** A container that ended by itself, and lives again once it is started. */
function stoppedAgent(): FakeAgent {
  const agent = lab.agent();
  agent.health = 'stopped';
  return agent.on('startContainer', () => {
    agent.health = 'healthy';
  });
}

const healthsOf = (agent: FakeAgent): ContainerHealth[] =>
  agent.observations.map(({ health }) => health);

const seen = (agent: FakeAgent, ...healths: ContainerHealth[]): Promise<void> =>
  agent
    .until(`${healths.join(', ')} are observed`, () => agent.observations.length >= healths.length)
    .then(() => expect(healthsOf(agent)).toEqual(healths));

describe('the watch', () => {
  test('records each change of health once, and shows the phase that follows', async () => {
    const agent = lab.agent();
    const supervisor = await watched(agent);

    agent.health = 'unhealthy';
    await lab.pass(A_WHILE);
    await seen(agent, 'unhealthy');
    await supervisor.inPhase('error');

    agent.health = 'healthy';
    await lab.pass(A_WHILE);
    await seen(agent, 'unhealthy', 'healthy');
    await supervisor.inPhase('running');

    await lab.pass('10 minutes');
    expect(agent.observations).toEqual([
      { health: 'unhealthy', reason: expect.any(String) },
      { health: 'healthy', reason: null },
    ]);
    expect(agent.containerSteps).toEqual([]);
  });

  test('of a healthy agent adds nothing to the history, however often it checks', async () => {
    const agent = lab.agent();
    const supervisor = await watched(agent);
    const before = await supervisor.historyLength();

    await lab.pass('41 minutes');
    expect(agent.checks).toBeGreaterThanOrEqual(20);
    expect(await supervisor.historyLength()).toBe(before);
    expect(agent.observations).toEqual([]);
  });

  test('waits for a container that is starting', async () => {
    const agent = lab.agent();
    agent.health = 'starting';
    const supervisor = await watched(agent);
    await lab.pass(A_WHILE);
    expect(agent.observations).toEqual([]);

    agent.health = 'healthy';
    await supervisor.checkNow();
    await seen(agent, 'healthy');
    expect(agent.containerSteps).toEqual([]);
  });
});

describe('a wake-up', () => {
  test('leads to a new observation at once', async () => {
    const agent = lab.agent();
    const supervisor = await watched(agent);
    agent.health = 'unhealthy';
    await supervisor.checkNow();
    await seen(agent, 'unhealthy');
  });

  test('tells the health also when it is the same', async () => {
    const agent = lab.agent();
    const supervisor = await watched(agent);
    await supervisor.checkNow();
    await seen(agent, 'healthy');
  });

  test('during an operation waits for its end', async () => {
    const gate = new Gate();
    const agent = lab.agent().on('stopContainer', gate.pass);
    const supervisor = await watched(agent);
    await supervisor.request('restart', 'restart');
    await agent.reached('stopContainer');
    await supervisor.checkNow();
    gate.open();

    expect(await agent.end('restart')).toBe('succeeded');
    await seen(agent, 'healthy');
    expect(agent.containerSteps).toEqual(['stopContainer', ...BRING_UP]);
    expect(agent.overlapped).toBe(false);
  });

  test('during a stop does not start the agent again', async () => {
    const gate = new Gate();
    const agent = lab.agent().on('stopContainer', gate.pass);
    const supervisor = await watched(agent);
    await supervisor.request('stop', 'stop');
    await agent.reached('stopContainer');
    await supervisor.checkNow();
    agent.health = 'stopped';
    gate.open();

    expect(await agent.end('stop')).toBe('succeeded');
    await lab.pass(A_WHILE);
    expect(agent.containerSteps).toEqual(['stopContainer']);
    expect(agent.observations).toEqual([]);
  });
});

describe('a container that ended by itself', () => {
  test('is started again, and watched', async () => {
    const agent = stoppedAgent();
    const supervisor = await watched(agent);
    await agent.reached('recordRunning');
    await supervisor.inPhase('running');
    await agent.reached('watchHealth', 2);

    expect(agent.observations).toEqual([{ health: 'stopped', reason: expect.any(String) }]);
    expect(agent.containerSteps).toEqual(BRING_UP);
    expect(agent.finished).toEqual([]);
  });

  test('and does not come back is told, and tried again after a pause', async () => {
    const agent = stoppedAgent().on('createContainer', refuse());
    const supervisor = await watched(agent);
    await seen(agent, 'stopped', 'stopped');
    await supervisor.inPhase('error');
    await lab.pass('1 minute');
    expect(agent.steps.filter((step) => step === 'createContainer')).toHaveLength(1);

    agent.behave('createContainer');
    await lab.pass('90 seconds');
    await agent.reached('recordRunning');
    expect(agent.steps.filter((step) => step === 'createContainer')).toHaveLength(2);
    await supervisor.inPhase('running');
    // What is there of the agent stays, whatever becomes of the attempts.
    for (const step of REMOVAL) expect(agent.steps).not.toContain(step);
  });

  test('and ends again right after it came back is left alone for a while', async () => {
    const agent = lab.agent();
    agent.health = 'stopped';
    await watched(agent);
    await seen(agent, 'stopped', 'stopped');
    await lab.pass('1 minute');
    expect(agent.steps.filter((step) => step === 'startContainer')).toHaveLength(1);
    await lab.pass('90 seconds');
    await agent.reached('startContainer', 2);
  });

  test('and does not come back is tried again at once by a wake-up', async () => {
    const agent = stoppedAgent().on('createContainer', refuse());
    const supervisor = await watched(agent);
    await seen(agent, 'stopped', 'stopped');
    agent.behave('createContainer');
    await supervisor.checkNow();
    await agent.reached('recordRunning');
  });

  test.each([
    ['stop', 'startContainer', ['stopContainer']],
    ['stop', 'awaitReady', ['stopContainer']],
    ['restart', 'awaitReady', ['stopContainer', ...BRING_UP]],
    ['delete', 'createContainer', REMOVAL],
    ['delete', 'awaitReady', REMOVAL],
  ] as const)('is left to a %s that is asked for in %s', async (kind, step, steps) => {
    const agent = stoppedAgent().on(step, untilCancelled);
    const supervisor = await watched(agent);
    await agent.reached(step);
    const before = agent.containerSteps.length;
    agent.health = 'healthy';
    if (kind === 'restart') agent.on(step, () => undefined);
    await supervisor.request(kind, 'op');

    expect(await agent.end('op')).toBe('succeeded');
    expect(agent.containerSteps.slice(before)).toEqual(steps);
    expect(agent.overlapped).toBe(false);
    expect(agent.steps.filter((taken) => taken === 'recordRunning')).toHaveLength(
      kind === 'restart' ? 1 : 0,
    );
    if (kind === 'delete') await supervisor.ended();
  });

  test.each(['stop', 'delete'] as const)(
    'and does not come back is left to a %s that is asked for in the pause',
    async (kind) => {
      const agent = stoppedAgent().on('createContainer', refuse());
      const supervisor = await watched(agent);
      await seen(agent, 'stopped', 'stopped');
      await supervisor.request(kind, 'op');

      expect(await agent.end('op')).toBe('succeeded');
      await lab.pass('10 minutes');
      expect(agent.containerSteps.filter((step) => !BRING_UP.includes(step))).toEqual(
        kind === 'delete' ? REMOVAL : ['stopContainer'],
      );
      expect(agent.steps.filter((step) => step === 'createContainer')).toHaveLength(1);
    },
  );
});

describe('a port that was taken while the agent was down', () => {
  test.each(['start', 'revival'] as const)('is exchanged for the next one by a %s', async (by) => {
    const ports: number[] = [];
    const agent = lab.agent();
    agent.port = 40_000;
    agent.health = 'stopped';
    agent.on('startContainer', () => {
      ports.push(agent.port);
      if (ports.length === 1) return refuse('PortTakenError')(1);
      agent.health = 'healthy';
    });
    const desired = by === 'start' ? 'stopped' : 'running';
    const supervisor = await lab.supervise(agent, { desired });
    if (by === 'start') {
      await supervisor.request('start', 'start');
      expect(await agent.end('start')).toBe('succeeded');
    }
    await agent.reached('recordRunning');

    expect(ports).toEqual([40_000, 40_001]);
    // The volume holds what the agent knows, and stays.
    expect(agent.containerSteps.filter((step) => REMOVAL.includes(step))).toEqual([
      'removeContainer',
      'removeNetwork',
    ]);
  });
});
