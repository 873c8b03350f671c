import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { poll } from '../../dev/poll.js';
import { HANGS_MS } from '../support/until.js';
import { Gate } from './support/gate.js';
import { refuse, untilCancelled } from './support/misbehaviours.js';
import { realServer } from './support/real-server.js';
import { refusalOf } from './support/refusal.js';
import { dies, watched } from './support/watched-agent.js';
import { SETTINGS, WorkflowLab, type Supervised } from './support/workflow-lab.js';

const REMOVAL = ['removeContainer', 'removeNetwork', 'removeVolume'];

// A real server: the time-skipping server loses a run that is signalled at the end of a step or cancelled
// during a step.
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
  test('the watchdog finds a container that ended right after its start by an operation', async () => {
    const gate = new Gate();
    const agent = lab.agent().on('finishOperation', gate.pass);
    const supervisor = await watched(lab, agent);
    await supervisor.request('start', 'start');
    await agent.reached('finishOperation');
    await dies(agent, supervisor);
    gate.open();
    await agent.went('degraded (exit)', 'repairing (exit)');
  });

  test('the watchdog reads the cause of an end after an operation that itself stopped the container', async () => {
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

  test('the watchdog handles an end that was reported while an operation was withdrawn', async () => {
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

  test('the watchdog handles an end whose check was interrupted by a withdrawn operation', async () => {
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
    'the watchdog starts an agent again after Docker returned during its start only if it has ended: %s',
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

  test("the watchdog repeats the check after Docker's return if a withdrawn operation interrupted it", async () => {
    const gates = { start: new Gate(), observe: new Gate() };
    const agent = lab
      .agent()
      .on('awaitReady', gates.start.pass)
      .on('observeAgent', gates.observe.pass);
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
    gates.observe.open();
    await agent.went('starting (host_returned)', 'running (healthy)');
    expect(agent.memory?.crashes).toEqual([]);
  });

  test('the watchdog accepts another operation after one was withdrawn during a repair', async () => {
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

  test('the watchdog leaves an agent to an operator after the run of its repair was terminated', async () => {
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
  test('a repair runs on request while automatic repairs are disabled', async () => {
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
    'a repair in %s is cancelled by a stop',
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

  test('a repair is cancelled by a deletion', async () => {
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

  test('a repair is cancelled when Docker returns, which starts the agent', async () => {
    const agent = lab.agent().on('killGateway', untilCancelled);
    const supervisor = await watched(lab, agent);
    await dies(agent, supervisor);
    await agent.reached('killGateway');
    await supervisor.dockerReturned();
    await agent.went('repairing (exit)', 'starting (host_returned)', 'running (healthy)');
    expect(agent.memory?.crashes).toEqual([]);
  });
});

describe('an unhealthy agent', () => {
  test('an unhealthy agent can be updated and runs as updated', async () => {
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

  test('an unhealthy agent stays degraded after a rolled back update', async () => {
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

describe('a supervisor that continues as new', () => {
  const CALLS = 1_000;

  /** Requests checks until the run continues as new; returns the number of its events. */
  async function intoNewRun(supervisor: Supervised): Promise<number> {
    const first = supervisor.firstRunId;
    for (let call = 0; call < CALLS; call++) {
      // One at a time: a run does not end while signals arrive.
      await supervisor.checkNow();
      const isReceived = async () => {
        const { raw } = await supervisor.handle.describe();
        return raw.pendingWorkflowTask ? undefined : true;
      };
      expect(await poll(isReceived, { timeoutMs: HANGS_MS, everyMs: 5 })).toBe(true);
      if ((await supervisor.runId()) !== first) {
        const { workflow } = lab.environment.client;
        const ended = await workflow.getHandle(supervisor.handle.workflowId, first).describe();
        return ended.historyLength;
      }
    }
    throw new Error(`the run did not continue as new: ${await supervisor.historyLength()} events`);
  }

  test.each(['running', 'degraded', 'crash_loop', 'starting'] as const)(
    'a supervisor that continues as new from %s keeps state and crashes, with under 1,000 events a run',
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
