import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { poll } from '../../dev/poll.js';
import { Gate } from './support/gate.js';
import { refuse, untilCancelled } from './support/misbehaviours.js';
import { realServer } from './support/real-server.js';
import { refusalOf } from './support/refusal.js';
import { dies, watched } from './support/watched-agent.js';
import { SETTINGS, WorkflowLab, type Supervised } from './support/workflow-lab.js';

const REMOVAL = ['removeContainer', 'removeNetwork', 'removeVolume'];

// A real server: the one that skips time loses track of a run that is signalled as it ends a step,
// or cancelled in the middle of one.
let lab: WorkflowLab;
beforeAll(async () => {
  lab = await WorkflowLab.open({ environment: realServer });
});
afterEach(async () => {
  lab.settings = SETTINGS;
  await lab.endSupervisors();
});
afterAll(() => lab?.close());

describe('the watchdog', () => {
  test('finds a container that ended right after an operation started it', async () => {
    const gate = new Gate();
    const agent = lab.agent().on('finishOperation', gate.pass);
    const supervisor = await watched(lab, agent);
    await supervisor.request('start', 'start');
    await agent.reached('finishOperation');
    await dies(agent, supervisor);
    gate.open();
    await agent.went('degraded (exit)', 'repairing (exit)');
  });

  test('asks the container how it ended after an operation, which has ended it before', async () => {
    const gate = new Gate();
    const agent = lab.agent().on('startContainer', gate.pass);
    const supervisor = await watched(lab, agent);
    await supervisor.request('restart', 'restart');
    await agent.reached('startContainer');
    await supervisor.containerEnded({ cause: 'kill' });
    agent.health = 'stopped';
    gate.open();
    await agent.went('degraded (exit)', 'repairing (exit)');
  });

  test('judges what it heard while an operation was taken back', async () => {
    const gate = new Gate();
    const agent = lab.agent().on('beginOperation', gate.pass);
    agent.beginnings.set('op', 'withdrawn');
    const supervisor = await watched(lab, agent);
    await supervisor.request('restart', 'op');
    await agent.reached('beginOperation');
    agent.health = 'stopped';
    await supervisor.containerEnded({ cause: 'kill' });
    gate.open();
    await agent.went('degraded (kill)', 'repairing (kill)');
  });

  test('judges what it heard before one that was taken back, whose look gave way to it', async () => {
    const gate = new Gate();
    const agent = lab.agent().on('observeAgent', gate.pass);
    agent.beginnings.set('op', 'withdrawn');
    const supervisor = await watched(lab, agent);
    agent.health = 'stopped';
    await supervisor.containerEnded({ cause: 'kill' });
    await agent.reached('observeAgent');
    await supervisor.request('restart', 'op');
    await agent.reached('beginOperation');
    gate.open();
    await agent.went('degraded (kill)', 'repairing (kill)');
  });

  test.each(['healthy', 'stopped'] as const)(
    'brings up what was brought up when Docker was back only if it has ended since: %s',
    async (health) => {
      const gate = new Gate();
      const agent = lab.agent().on('awaitReady', gate.pass);
      const supervisor = await watched(lab, agent);
      await supervisor.request('restart', 'op');
      await agent.reached('awaitReady');
      await supervisor.dockerReturned();
      agent.health = health;
      gate.open();
      expect(await agent.end('op')).toBe('succeeded');
      await agent.reached('observeAgent');
      agent.health = 'healthy';
      await agent.reached('watchHealth', 2);
      const isBack = health === 'stopped';
      expect(agent.steps.includes('startExisting')).toBe(isBack);
      expect(agent.states.includes('starting (host_returned)')).toBe(isBack);
      expect(agent.memory?.crashes).toEqual([]);
    },
  );

  test('looks anew whether the return of Docker was met, when that look gave way to one taken back', async () => {
    const gates = { start: new Gate(), look: new Gate() };
    const agent = lab
      .agent()
      .on('awaitReady', gates.start.pass)
      .on('observeAgent', gates.look.pass);
    agent.beginnings.set('next', 'withdrawn');
    agent.on('startExisting', () => {
      agent.health = 'healthy';
    });
    const supervisor = await watched(lab, agent);
    await supervisor.request('restart', 'op');
    await agent.reached('awaitReady');
    await supervisor.dockerReturned();
    agent.health = 'stopped';
    gates.start.open();
    expect(await agent.end('op')).toBe('succeeded');
    await agent.reached('observeAgent');
    await supervisor.request('stop', 'next');
    await agent.reached('beginOperation', 2);
    gates.look.open();
    await agent.went('starting (host_returned)', 'running (healthy)');
    expect(agent.memory?.crashes).toEqual([]);
  });

  test('lets another operation in once one was taken back during a repair', async () => {
    const gate = new Gate();
    const agent = lab.agent().on('killGateway', gate.pass);
    agent.health = 'unhealthy';
    agent.beginnings.set('op', 'withdrawn');
    const supervisor = await watched(lab, agent, { state: 'degraded' });
    await agent.reached('killGateway');
    await supervisor.request('restart', 'op');
    await agent.reached('beginOperation');
    const refusal = () => refusalOf(supervisor.request('stop', 'next', randomUUID()));
    await expect.poll(refusal).toBeUndefined();
    gate.open();
    expect(await agent.end('next')).toBe('succeeded');
    expect(new Set(agent.begun)).toEqual(new Set(['next']));
  });

  test('leaves an agent to a person when somebody ended the run of its repair', async () => {
    const agent = lab.agent();
    const supervisor = await watched(lab, agent);
    agent.health = 'unhealthy';
    await supervisor.checkNow();
    await agent.reached('killGateway');
    await lab.environment.client.workflow
      .getHandle(`repair-agent-${agent.ref.agentId}`)
      .terminate();
    await agent.went('crash_loop (repair_failed)');
  });
});

describe('a repair', () => {
  test('is made on demand where repairs by themselves are switched off', async () => {
    lab.settings = { ...lab.settings, autoRepair: false };
    const agent = lab.agent();
    agent.health = 'unhealthy';
    const supervisor = await watched(lab, agent, { state: 'degraded' });
    await agent.reached('watchDegraded');
    expect(agent.containerSteps).toEqual([]);

    await supervisor.request('repair', 'repair');
    await agent.reached('killGateway');
    expect(agent.states.at(-1)).toBe('repairing (operation)');
  });

  test.each(['killGateway', 'startContainer'] as const)(
    'is given up in %s for a stop',
    async (step) => {
      const agent = lab.agent().on(step, untilCancelled);
      const supervisor = await watched(lab, agent);
      agent.health = 'unhealthy';
      await supervisor.checkNow();
      await agent.reached(step);
      await supervisor.request('stop', 'stop');

      expect(await agent.end('stop')).toBe('succeeded');
      expect(agent.states.slice(-2)).toEqual(['repairing (unhealthy)', 'stopped (operation)']);
      expect(agent.containerSteps.at(-1)).toBe('stopContainer');
      expect(agent.overlapped).toBe(false);
    },
  );

  test('is given up for a deletion', async () => {
    const agent = lab.agent().on('startContainer', untilCancelled);
    const supervisor = await watched(lab, agent);
    agent.health = 'unhealthy';
    await supervisor.checkNow();
    await agent.reached('startContainer');
    await supervisor.request('delete', 'delete');
    expect(await agent.end('delete')).toBe('succeeded');
    expect(agent.containerSteps.slice(-3)).toEqual(REMOVAL);
    await supervisor.ended();
  });

  test('is given up for a Docker daemon that is back, which brings the agent up', async () => {
    const agent = lab.agent().on('killGateway', untilCancelled);
    const supervisor = await watched(lab, agent);
    await dies(agent, supervisor);
    await agent.reached('killGateway');
    await supervisor.dockerReturned();
    await agent.went('repairing (exit)', 'starting (host_returned)', 'running (healthy)');
    expect(agent.memory?.crashes).toEqual([]);
  });
});

describe('an agent that is not well', () => {
  test('can be updated, and runs as the update leaves it', async () => {
    lab.settings = { ...lab.settings, autoRepair: false };
    const agent = lab.agent();
    agent.health = 'unhealthy';
    const supervisor = await watched(lab, agent, { state: 'degraded' });
    await agent.reached('watchDegraded');
    agent.on('startContainer', () => {
      agent.health = 'healthy';
    });
    await supervisor.request('update', 'update');

    expect(await agent.end('update')).toBe('succeeded');
    await agent.went('starting (operation)', 'running (healthy)');
    expect(agent.containerSteps).not.toContain('restoreContainer');
  });

  test('stays so when an update of it is undone', async () => {
    lab.settings = { ...lab.settings, autoRepair: false };
    const agent = lab.agent();
    agent.health = 'unhealthy';
    const supervisor = await watched(lab, agent, { state: 'degraded' });
    await agent.reached('watchDegraded');
    let gates = 0;
    agent.on('awaitReady', () => {
      if (++gates === 1) return refuse('AgentNotReadyError')(1);
    });
    await supervisor.request('update', 'update');

    expect(await agent.end('update')).toBe('failed');
    expect(agent.containerSteps).toContain('restoreContainer');
    await agent.went('starting (operation)', 'degraded (operation)');
  });
});

describe('a supervisor that goes on in a new run', () => {
  const CALLS = 1_000;

  /** Asks for looks until the run is over; returns how many events it had. */
  async function intoNewRun(supervisor: Supervised): Promise<number> {
    const first = supervisor.firstRunId;
    for (let call = 0; call < CALLS; call++) {
      // One by one: a run does not end while signals come in.
      await supervisor.checkNow();
      const isHeard = async () => {
        const { raw } = await supervisor.handle.describe();
        return raw.pendingWorkflowTask ? undefined : true;
      };
      expect(await poll(isHeard, { timeoutMs: 150_000, everyMs: 5 })).toBe(true);
      if ((await supervisor.runId()) !== first) {
        const { workflow } = lab.environment.client;
        const ended = await workflow.getHandle(supervisor.handle.workflowId, first).describe();
        return ended.historyLength;
      }
    }
    throw new Error(`the run goes on and on: ${await supervisor.historyLength()}`);
  }

  test.each(['running', 'degraded', 'crash_loop', 'starting'] as const)(
    'from %s keeps its state and its crashes, and no run is longer than 1,000 events',
    async (state) => {
      const agent = lab.agent();
      if (state === 'degraded') lab.settings = { ...lab.settings, autoRepair: false };
      agent.health =
        state === 'running' ? 'healthy' : state === 'starting' ? 'starting' : 'unhealthy';
      const at = Date.now();
      const supervisor = await watched(lab, agent, { state, crashes: [at - 2_000, at - 1_000] });
      expect(await intoNewRun(supervisor)).toBeLessThan(1_000);
      expect(agent.transitions).toEqual([]);

      if (state === 'crash_loop') {
        agent.health = 'healthy';
        await supervisor.request('start', 'start');
        expect(await agent.end('start')).toBe('succeeded');
        await agent.went('starting (operation)', 'running (healthy)');
        return;
      }
      await dies(agent, supervisor);
      await agent.went('degraded (exit)', 'crash_loop (exit)');
    },
  );
});
