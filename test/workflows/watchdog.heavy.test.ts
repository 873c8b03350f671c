import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { FakeAgent } from './support/fake-agent.js';
import { dies, watched } from './support/watched-agent.js';
import { ATTEMPT, goesTo } from './support/watchdog-states.js';
import { WorkflowLab } from './support/workflow-lab.js';

// A server for each test: the server stops skipping time after a workflow is terminated during a step.
let lab: WorkflowLab;
beforeEach(async () => {
  lab = await WorkflowLab.open();
});
afterEach(() => lab?.close());

const goes = (agent: FakeAgent, ...states: string[]) => goesTo(lab, agent, states);
const now = () => lab.environment.currentTimeMs();

describe('a healthy agent', () => {
  test('a healthy agent adds nothing to the history, however often it is checked', async () => {
    const agent = lab.agent();
    const supervisor = await watched(lab, agent);
    const before = await supervisor.historyLength();

    await lab.pass('1 day');
    expect(agent.checks).toBeGreaterThanOrEqual(700);
    expect(await supervisor.historyLength()).toBe(before);
    expect(agent.transitions).toEqual([]);
  });

  test('a starting agent is running after its first successful check', async () => {
    const agent = lab.agent();
    agent.health = 'starting';
    const supervisor = await watched(lab, agent, { state: 'starting' });
    await agent.reached('watchHealth');
    expect(agent.transitions).toEqual([]);

    agent.health = 'healthy';
    await lab.pass('3 minutes');
    await goes(agent, 'running (healthy)');
    await supervisor.inPhase('running');
  });
});

describe('an agent that fails a check', () => {
  test('an agent that fails a check is degraded, and runs again untouched if the next check succeeds', async () => {
    const agent = lab.agent();
    const supervisor = await watched(lab, agent);
    agent.health = 'unhealthy';
    agent.on('observeAgent', () => {
      agent.health = 'healthy';
    });
    await lab.pass('3 minutes');

    await goes(agent, 'degraded (unhealthy)', 'running (healthy)');
    await supervisor.inPhase('running');
    expect(agent.containerSteps).toEqual([]);
    expect(agent.memory?.crashes).toEqual([]);
  });

  test('an agent that fails a check is repaired: killed, started after 5 s and verified after 30 s', async () => {
    const agent = lab.agent();
    const supervisor = await watched(lab, agent);
    const times: Record<string, number> = {};
    agent.on('killGateway', async () => {
      times.kill = await now();
    });
    agent.health = 'unhealthy';
    agent.on('startContainer', async () => {
      times.start = await now();
      agent.health = 'healthy';
    });

    await goes(agent, 'degraded (unhealthy)', 'repairing (unhealthy)', 'running (repaired)');
    await supervisor.inPhase('running');
    expect(agent.containerSteps).toEqual(ATTEMPT);
    expect((times.start ?? 0) - (times.kill ?? 0)).toBeGreaterThanOrEqual(5_000);
    expect((agent.memory?.since ?? 0) - (times.start ?? 0)).toBeGreaterThanOrEqual(30_000);
    expect(agent.memory).toMatchObject({ crashes: [], repairAttempts: 1 });
    expect(agent.memory?.lastRepair).toEqual(expect.any(Number));
  });

  test('an agent is repaired a second time if the first attempt does not help', async () => {
    const agent = lab.agent();
    await watched(lab, agent);
    let starts = 0;
    agent.on('startContainer', () => {
      if (++starts === 2) agent.health = 'healthy';
    });
    agent.health = 'unhealthy';
    await lab.pass('3 minutes');

    await goes(agent, 'repairing (unhealthy)', 'running (repaired)');
    expect(agent.containerSteps).toEqual([...ATTEMPT, ...ATTEMPT]);
    expect(agent.memory).toMatchObject({ repairAttempts: 2, crashes: [expect.any(Number)] });
  });

  test('an agent fails three checks after each start before the attempt fails', async () => {
    const agent = lab.agent();
    const supervisor = await watched(lab, agent);
    agent.health = 'unhealthy';
    await lab.pass('3 minutes');

    await goes(agent, 'repairing (unhealthy)', 'crash_loop (repair_failed)');
    await supervisor.inPhase('crash_loop');
    expect(agent.containerSteps).toEqual([...ATTEMPT, ...ATTEMPT]);
    // The second check, and three checks for each of two attempts.
    expect(agent.steps.filter((step) => step === 'observeAgent')).toHaveLength(7);
    expect(agent.transitions.at(-1)?.reason).toBe('It is unhealthy');
    expect(agent.memory?.crashes).toHaveLength(2);
  });

  test('an agent without automatic repair is checked every 5 s until it recovers', async () => {
    lab.settings = { ...lab.settings, autoRepair: false };
    const agent = lab.agent();
    const supervisor = await watched(lab, agent);
    agent.health = 'unhealthy';
    await lab.pass('3 minutes');
    await agent.reached('watchDegraded');
    await supervisor.inPhase('degraded');

    agent.health = 'healthy';
    await lab.pass('3 minutes');
    await goes(agent, 'degraded (unhealthy)', 'running (healthy)');
    expect(agent.containerSteps).toEqual([]);
  });
});

describe('a container that ended', () => {
  test.each(['exit', 'oom', 'kill', 'stop'] as const)(
    "a container's end (%s) counts as a crash as soon as it is reported, and is repaired",
    async (cause) => {
      const agent = lab.agent();
      const supervisor = await watched(lab, agent);
      agent.health = 'stopped';
      agent.on('startContainer', () => {
        agent.health = 'healthy';
      });
      await supervisor.containerEnded({ cause });

      await goes(agent, `degraded (${cause})`, `repairing (${cause})`, 'running (repaired)');
      expect(agent.steps.filter((step) => step === 'recordCrash')).toHaveLength(1);
      expect(agent.memory?.crashes).toHaveLength(1);
    },
  );
});

describe('a crash loop', () => {
  test('a third crash within the window makes a crash loop, which is not repaired', async () => {
    const agent = lab.agent();
    const at = await now();
    const supervisor = await watched(lab, agent, { crashes: [at - 200_000, at - 100_000] });
    await dies(agent, supervisor);

    await goes(agent, 'degraded (exit)', 'crash_loop (exit)');
    await supervisor.inPhase('crash_loop');
    await supervisor.checkNow();
    await supervisor.dockerReturned();
    await lab.pass('1 day');
    expect(agent.containerSteps).toEqual([]);
    expect(agent.states).toHaveLength(2);
  });
});
