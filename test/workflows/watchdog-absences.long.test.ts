import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { BRING_UP, type FakeAgent } from './support/fake-agent.js';
import { Gate } from './support/gate.js';
import { refuse } from './support/misbehaviours.js';
import { dies, watched } from './support/watched-agent.js';
import { ATTEMPT, goesTo, statusAtEnd } from './support/watchdog-states.js';
import { WorkflowLab } from './support/workflow-lab.js';

// A server for each test: the server stops skipping time after a workflow is terminated during a step.
let lab: WorkflowLab;
beforeEach(async () => {
  lab = await WorkflowLab.open();
});
afterEach(() => lab?.close());

const goes = (agent: FakeAgent, ...states: string[]) => goesTo(lab, agent, states);
const ends = (agent: FakeAgent, id: string) => statusAtEnd(lab, agent, id);
const now = () => lab.environment.currentTimeMs();

describe('a repair is not cancelled by a withdrawn request', () => {
  test('a repair continues with the next attempt after a permanent failure of a step', async () => {
    const agent = lab.agent();
    const supervisor = await watched(lab, agent);
    agent.health = 'unhealthy';
    let starts = 0;
    agent.on('startContainer', () => {
      if (++starts === 1) return refuse()(1);
      agent.health = 'healthy';
    });
    await supervisor.checkNow();
    await goes(agent, 'repairing (unhealthy)', 'running (repaired)');
    expect(agent.memory?.repairAttempts).toBe(2);
  });
});

describe('a bring-up during a withdrawn request', () => {
  test('a repair', async () => {
    const gate = new Gate();
    const agent = lab.agent().on('killGateway', gate.pass);
    agent.beginnings.set('stop', 'withdrawn');
    const supervisor = await watched(lab, agent);
    await dies(agent, supervisor);
    await agent.reached('killGateway');
    await supervisor.request('stop', 'stop');
    await agent.reached('beginOperation');
    gate.open();

    await goes(agent, 'degraded (exit)', 'repairing (exit)', 'running (repaired)');
    expect(agent.states).toHaveLength(3);
    expect(agent.containerSteps).toEqual(ATTEMPT);
    await supervisor.request('stop', 'follows');
    expect(await ends(agent, 'follows')).toBe('succeeded');
  });

  test("a start after Docker's return is not cancelled by a withdrawn request", async () => {
    const gate = new Gate();
    const agent = lab.agent().on('startExisting', gate.pass);
    agent.beginnings.set('restart', 'withdrawn');
    const supervisor = await watched(lab, agent);
    await supervisor.dockerReturned();
    await agent.reached('startExisting');
    await supervisor.request('restart', 'restart');
    await agent.reached('beginOperation');
    gate.open();

    await goes(agent, 'starting (host_returned)', 'running (healthy)');
    expect(agent.containerSteps.filter((step) => step === 'startExisting')).toHaveLength(1);
  });
});

describe('return of a Docker daemon', () => {
  test('the return of Docker starts its agents at once, and their ends do not count as crashes', async () => {
    const agent = lab.agent();
    const before = (await now()) - 100_000;
    const supervisor = await watched(lab, agent, { crashes: [before, before + 99_000] });
    agent.health = 'stopped';
    agent.on('startExisting', () => {
      agent.health = 'healthy';
    });
    await supervisor.dockerReturned(before + 50_000);

    await goes(agent, 'starting (host_returned)', 'running (healthy)');
    expect(agent.containerSteps).toEqual(['startExisting', 'awaitReady']);
    expect(agent.memory?.crashes).toEqual([before]);
  });

  test("an end within Docker's absence is no crash, also without a notification of its return", async () => {
    const agent = lab.agent();
    const before = (await now()) - 100_000;
    const supervisor = await watched(lab, agent, { crashes: [before, before + 99_000] });
    agent.on('startExisting', () => {
      agent.health = 'healthy';
    });
    for (const end of [1, 2]) {
      await agent.reached('watchHealth', end);
      Object.assign(agent, { health: 'stopped', death: 'kill' });
      agent.away = { from: before + 50_000, endedAt: before + 60_000 + end };
      await supervisor.containerEnded({ cause: 'kill' });
      await agent.until('it is back', () => agent.states.length === 2 * end);
    }
    const back = ['starting (host_returned)', 'running (healthy)'];
    expect(agent.states).toEqual([...back, ...back]);
    expect(agent.memory?.crashes).toEqual([before]);
  });

  test("an agent that stays down after an end within Docker's absence has crashed", async () => {
    const agent = lab.agent().on('awaitReady', refuse('AgentNotReadyError'));
    const supervisor = await watched(lab, agent);
    agent.health = 'stopped';
    agent.away = { from: 0, endedAt: 1 };
    agent.on('killGateway', () => {
      agent.health = 'healthy';
    });
    await supervisor.checkNow();
    await goes(
      agent,
      'starting (host_returned)',
      'degraded (exit)',
      'repairing (exit)',
      'running (repaired)',
    );
    expect(agent.memory?.crashes).toHaveLength(1);
  });

  test('the return of Docker ends only a crash loop that its outage caused', async () => {
    const agent = lab.agent();
    const at = await now();
    const crashes = [at - 90_000, at - 20_000, at - 10_000];
    const memory = { state: 'crash_loop', since: at - 10_000, crashes } as const;
    const supervisor = await watched(lab, agent, memory);
    agent.health = 'stopped';
    agent.on('startExisting', () => {
      agent.health = 'healthy';
    });
    await supervisor.dockerReturned(at - 5_000);
    await lab.pass('10 minutes');
    expect(agent.transitions).toEqual([]);

    await supervisor.dockerReturned(at - 30_000);
    await goes(agent, 'starting (host_returned)', 'running (healthy)');
    expect(agent.memory?.crashes).toEqual([at - 90_000]);
  });

  test('the return of Docker recreates a missing container', async () => {
    const agent = lab.agent();
    agent.containerIsThere = false;
    const supervisor = await watched(lab, agent);
    await supervisor.dockerReturned();
    await goes(agent, 'starting (host_returned)', 'running (healthy)');
    expect(agent.containerSteps).toEqual(['startExisting', ...BRING_UP]);
  });

  test('the return of Docker stops an agent that should be stopped', async () => {
    const agent = lab.agent();
    const supervisor = await lab.supervise(agent, { desired: 'stopped' });
    await supervisor.dockerReturned();
    await lab.pass('10 minutes');
    expect(agent.containerSteps).toEqual(['stopContainer']);
  });

  test("a refused stop after Docker's return is recorded once, and so is the later stop", async () => {
    const agent = lab.agent().on('stopContainer', refuse('LastingRefusalError'));
    const supervisor = await lab.supervise(agent, { desired: 'stopped' });
    await supervisor.dockerReturned();
    await agent.went('running (stop_refused)');
    await supervisor.checkNow();
    await agent.until('it is tried again', () => agent.containerSteps.length === 2);

    agent.behave('stopContainer');
    await supervisor.checkNow();
    await agent.went('running (stop_refused)', 'stopped (stopped)');
    expect(agent.states).toHaveLength(2);
  });

  test("an agent that does not start after Docker's return has crashed and is repaired", async () => {
    const agent = lab.agent().on('awaitReady', refuse('AgentNotReadyError'));
    const supervisor = await watched(lab, agent);
    agent.health = 'unhealthy';
    agent.on('killGateway', () => {
      agent.health = 'healthy';
    });
    await supervisor.dockerReturned();
    await goes(
      agent,
      'starting (host_returned)',
      'degraded (start_failed)',
      'repairing (unhealthy)',
      'running (repaired)',
    );
    expect(agent.memory?.crashes).toHaveLength(1);
  });
});

describe('a missing memory', () => {
  const lose = (agent: FakeAgent) => {
    Object.assign(agent, { memoryIsThere: false, containerIsThere: false });
    Object.assign(agent, { health: 'stopped', death: 'gone' });
  };

  test('a missing memory is reported after one check, and the agent is not repaired', async () => {
    const agent = lab.agent();
    const supervisor = await watched(lab, agent);
    lose(agent);
    await supervisor.containerEnded({ cause: 'kill' });

    await goes(agent, 'degraded (kill)', 'repairing (kill)', 'crash_loop (memory_missing)');
    await supervisor.inPhase('crash_loop');
    await supervisor.checkNow();
    await supervisor.dockerReturned();
    await lab.pass('1 day');
    expect(agent.states).toHaveLength(3);
    expect(agent.steps.filter((step) => step === 'killGateway')).toHaveLength(1);
    expect(agent.steps).not.toContain('createVolume');
    expect(agent.steps).not.toContain('createContainer');
  });

  test('a missing memory is reported when the host returns without it', async () => {
    const agent = lab.agent();
    const supervisor = await watched(lab, agent);
    lose(agent);
    await supervisor.dockerReturned();
    await goes(agent, 'starting (host_returned)', 'crash_loop (memory_missing)');
    expect(agent.steps).not.toContain('createContainer');
  });
});
