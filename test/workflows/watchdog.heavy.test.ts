import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { BRING_UP, type FakeAgent } from './support/fake-agent.js';
import { Gate } from './support/gate.js';
import { refuse } from './support/misbehaviours.js';
import { dies, watched } from './support/watched-agent.js';
import { WorkflowLab } from './support/workflow-lab.js';

/** Steps of one repair attempt: they create and start the container without waiting for it. */
const ATTEMPT = ['killGateway', ...BRING_UP.filter((step) => step !== 'awaitReady')];

// A server for each test: the server stops skipping time after a workflow is terminated during a step.
let lab: WorkflowLab;
beforeEach(async () => {
  lab = await WorkflowLab.open();
});
afterEach(() => lab?.close());

/** Skips time until the watchdog has recorded these states in this order. */
async function goes(agent: FakeAgent, ...states: string[]): Promise<void> {
  for (let minute = 0; minute < 10; minute++) {
    await lab.pass('1 minute');
    if (agent.states.slice(-states.length).join() === states.join()) return;
  }
  expect(agent.states).toEqual(states);
}

/** Skips time until the operation has ended and returns its status. */
async function ends(agent: FakeAgent, id: string): Promise<string | undefined> {
  for (let minute = 0; minute < 10; minute++) {
    if (agent.finished.some((operation) => operation.id === id)) break;
    await lab.pass('1 minute');
  }
  return agent.finished.find((operation) => operation.id === id)?.status;
}

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

describe('an agent that starts', () => {
  test.each([3, 5])(
    'a start fails after %i failed checks, which count as one crash',
    async (threshold) => {
      lab.settings = { ...lab.settings, startupFailureThreshold: threshold };
      const agent = lab.agent().on('killGateway', () => {
        agent.health = 'healthy';
      });
      agent.health = 'unhealthy';
      let checks = 0;
      agent.on('recordTransition', () => {
        checks ||= agent.checks;
      });
      await watched(lab, agent, { state: 'starting' });
      await goes(agent, 'degraded (start_failed)', 'repairing (unhealthy)', 'running (repaired)');
      expect(checks).toBe(threshold);
      expect(agent.memory?.crashes).toHaveLength(1);
    },
  );

  test('a starting agent that fails two checks and passes the third has not crashed', async () => {
    const agent = lab.agent();
    agent.health = 'unhealthy';
    agent.on('watchHealth', () => {
      if (agent.checks === 2) agent.health = 'healthy';
    });
    await watched(lab, agent, { state: 'starting' });
    await goes(agent, 'running (healthy)');
    expect(agent.memory?.crashes).toEqual([]);
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

  test('an end counts as out of memory if the container says so, whatever was reported', async () => {
    const agent = lab.agent();
    const supervisor = await watched(lab, agent);
    agent.death = 'oom';
    await dies(agent, supervisor);
    await goes(agent, 'degraded (oom)', 'repairing (oom)', 'running (repaired)');
  });

  test('an end that was not reported is found by the next check', async () => {
    const agent = lab.agent();
    await watched(lab, agent);
    agent.death = 'gone';
    agent.health = 'stopped';
    agent.on('startContainer', () => {
      agent.health = 'healthy';
    });
    await lab.pass('3 minutes');
    await goes(agent, 'degraded (gone)', 'repairing (gone)', 'running (repaired)');
  });

  test('a container that runs again at the check has not crashed', async () => {
    const agent = lab.agent();
    const supervisor = await watched(lab, agent);
    await supervisor.containerEnded();
    await agent.reached('observeAgent');
    await agent.reached('watchHealth', 2);
    expect(agent.transitions).toEqual([]);
  });

  test('a container that was started externally is starting', async () => {
    const agent = lab.agent();
    const supervisor = await watched(lab, agent);
    agent.health = 'starting';
    await supervisor.containerEnded({ cause: 'stop' });
    await agent.went('starting (stop)');
    agent.health = 'healthy';
    await lab.pass('3 minutes');
    await goes(agent, 'running (healthy)');
    expect(agent.containerSteps).toEqual([]);
  });

  test('a container that an operation stopped has not crashed', async () => {
    const gate = new Gate();
    const agent = lab.agent().on('stopContainer', gate.pass);
    const supervisor = await watched(lab, agent);
    await supervisor.request('restart', 'restart');
    await agent.reached('stopContainer');
    await supervisor.containerEnded({ cause: 'stop' });
    gate.open();

    expect(await agent.end('restart')).toBe('succeeded');
    await agent.reached('observeAgent');
    expect(agent.states).toEqual(['starting (operation)', 'running (healthy)']);
    expect(agent.containerSteps).toEqual(['stopContainer', ...BRING_UP]);
  });

  test('a container that ended during a stop stays stopped', async () => {
    const gate = new Gate();
    const agent = lab.agent().on('stopContainer', gate.pass);
    const supervisor = await watched(lab, agent);
    await supervisor.request('stop', 'stop');
    await agent.reached('stopContainer');
    agent.health = 'stopped';
    await supervisor.containerEnded({ cause: 'stop' });
    gate.open();

    expect(await agent.end('stop')).toBe('succeeded');
    await lab.pass('10 minutes');
    expect(agent.containerSteps).toEqual(['stopContainer']);
    expect(agent.states).toEqual(['stopped (operation)']);
  });
});

describe('a crash loop', () => {
  test('a third crash within the window makes a crash loop, which is left alone', async () => {
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

  test('crashes before the window do not make a crash loop', async () => {
    const agent = lab.agent();
    const at = await now();
    const supervisor = await watched(lab, agent, { crashes: [at - 301_000, at - 300_001] });
    await dies(agent, supervisor);
    await goes(agent, 'degraded (exit)', 'repairing (exit)', 'running (repaired)');
    expect(agent.memory?.crashes).toHaveLength(1);
  });

  test.each([
    ['start', ['stopContainer', ...BRING_UP]],
    ['restart', ['stopContainer', ...BRING_UP]],
    ['repair', ATTEMPT],
  ] as const)('a %s ends a crash loop and clears the window', async (kind, steps) => {
    const agent = lab.agent();
    const at = await now();
    const supervisor = await watched(lab, agent, { state: 'crash_loop', crashes: [at, at, at] });
    await supervisor.request(kind, 'op');

    expect(await ends(agent, 'op')).toBe('succeeded');
    await goes(agent, kind === 'repair' ? 'running (repaired)' : 'running (healthy)');
    expect(agent.containerSteps).toEqual(steps);
    expect(agent.memory?.crashes).toEqual([]);
    await agent.reached('watchHealth');
  });

  test('a withdrawn start changes nothing in a crash loop', async () => {
    const agent = lab.agent();
    agent.beginnings.set('start', 'withdrawn');
    const at = await now();
    const supervisor = await watched(lab, agent, { state: 'crash_loop', crashes: [at, at, at] });
    agent.health = 'stopped';
    await supervisor.request('start', 'start');
    await agent.reached('beginOperation');
    await lab.pass('10 minutes');
    expect(agent.steps).toEqual(['beginOperation']);

    await supervisor.request('configure', 'op');
    expect(await ends(agent, 'op')).toBe('succeeded');
    expect(agent.transitions[0]).toMatchObject({
      from: 'crash_loop',
      memory: { crashes: [at, at, at] },
    });
  });

  test('a requested repair that fails ends in a crash loop', async () => {
    const agent = lab.agent();
    agent.health = 'unhealthy';
    const supervisor = await watched(lab, agent, { state: 'crash_loop' });
    await supervisor.request('repair', 'op');
    expect(await ends(agent, 'op')).toBe('failed');
    expect(agent.finished[0]?.error).toBe('It is unhealthy');
    await goes(agent, 'repairing (operation)', 'crash_loop (repair_failed)');
  });
});

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

  test('a missing memory is reported after one check, and the agent is left alone', async () => {
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
