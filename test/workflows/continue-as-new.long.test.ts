import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { poll } from '../../dev/poll.js';
import { Wakeups } from '../../workflows/wakeups.js';
import type { FakeAgent } from './support/fake-agent.js';
import { Gate } from './support/gate.js';
import { refuse, untilCancelled } from './support/misbehaviours.js';
import { WorkflowLab, type Supervised } from './support/workflow-lab.js';
import { HANGS_MS } from '../support/until.js';

const REMOVAL = ['removeContainer', 'removeNetwork', 'removeVolume'];
/** Ports in use, one less than are tried: they make the operation too long for one run. */
const TAKEN_PORTS = 19;
/** Number of the shortest operations that exceeds one run. */
const MANY = 100;

let lab: WorkflowLab;
beforeEach(async () => {
  lab = await WorkflowLab.open();
});
afterEach(() => lab?.close());

/** Creates an agent whose next start is so long that the supervisor continues as new after it. */
function agentOfLongStart(): FakeAgent {
  const agent = lab.agent();
  let taken = 0;
  return agent.on('startContainer', () => {
    if (++taken <= TAKEN_PORTS) return refuse('PortTakenError')(1);
  });
}

async function inNewRun(supervisor: Supervised): Promise<void> {
  const first = supervisor.firstRunId;
  const isNew = async () => (await supervisor.runId()) !== first || undefined;
  expect(await poll(isNew, { timeoutMs: HANGS_MS })).toBe(true);
}

const removals = (agent: FakeAgent): string[] =>
  agent.containerSteps.filter((step) => REMOVAL.includes(step));

describe('supervisor that continues as new', () => {
  test('the new run continues to watch a running agent and reports no state again', async () => {
    const agent = agentOfLongStart();
    const supervisor = await lab.supervise(agent);
    await supervisor.request('start', 'long');
    expect(await agent.end('long')).toBe('succeeded');
    await inNewRun(supervisor);

    const { checks } = agent;
    const reported = agent.transitions.length;
    await lab.pass('5 minutes');
    expect(agent.checks).toBeGreaterThan(checks);
    expect(agent.transitions).toHaveLength(reported);
    expect(await supervisor.historyLength()).toBeLessThan(20);
  });

  test('the new run executes the next operation without provisioning the agent again', async () => {
    const agent = agentOfLongStart();
    const supervisor = await lab.supervise(agent);
    await supervisor.request('start', 'long');
    expect(await agent.end('long')).toBe('succeeded');
    await inNewRun(supervisor);
    const before = removals(agent).length;

    agent.on('awaitReady', refuse('AgentNotReadyError'));
    await supervisor.request('start', 'next');
    expect(await agent.end('next')).toBe('failed');
    expect(removals(agent)).toHaveLength(before);
    expect(agent.begun).toEqual(['long', 'next']);
  });

  test('a waiting deletion is executed before the supervisor continues as new', async () => {
    const agent = agentOfLongStart().on('awaitReady', untilCancelled);
    const supervisor = await lab.supervise(agent);
    await supervisor.request('start', 'long');
    await agent.reached('awaitReady');
    await supervisor.request('delete', 'delete');

    expect(await agent.end('delete')).toBe('succeeded');
    expect(agent.finished.map(({ status }) => status)).toEqual(['cancelled', 'succeeded']);
    expect(agent.containerSteps.slice(-3)).toEqual(REMOVAL);
    await supervisor.ended();
  });

  test('the new run does not check or start an agent that should not run', async () => {
    const agent = agentOfLongStart().on('awaitReady', untilCancelled);
    const supervisor = await lab.supervise(agent);
    await supervisor.request('start', 'long');
    await agent.reached('awaitReady');
    // A failed deletion leaves the agent in this state.
    agent.on('removeVolume', refuse());
    await supervisor.request('delete', 'first');
    expect(await agent.end('first')).toBe('failed');
    await inNewRun(supervisor);

    const { checks } = agent;
    agent.health = 'stopped';
    await supervisor.checkNow();
    await lab.pass('5 minutes');
    expect(agent.checks).toBe(checks);

    agent.behave('removeVolume');
    await supervisor.request('delete', 'second');
    expect(await agent.end('second')).toBe('succeeded');
    await supervisor.ended();
  });

  test('the new run handles a notification that arrived at the end of the previous one', async () => {
    const ending = new Gate();
    const agent = agentOfLongStart().on('finishOperation', ending.pass);
    const supervisor = await lab.supervise(agent);
    await supervisor.request('start', 'long');
    await agent.reached('finishOperation');
    agent.health = 'stopped';
    await supervisor.dockerReturned();
    ending.open();
    await inNewRun(supervisor);
    const isUp = () => agent.states.includes('starting (host_returned)');
    await agent.until('it is brought up', isUp);
    expect(agent.memory?.crashes).toEqual([]);
  });

  test('the new run handles a container end that the previous one received', async () => {
    const agent = lab.agent();
    agent.health = 'stopped';
    const ended = { containerId: 'container', cause: 'kill', exitCode: 137, at: 0 } as const;
    await lab.supervise(agent, { wakeups: { ended } });
    await agent.went('degraded (kill)', 'repairing (kill)');
  });

  test('the new run receives all notifications that the previous one did not handle', () => {
    const ended = { containerId: 'container', cause: 'kill', exitCode: 137, at: 0 } as const;
    const received = { checkNow: true, ended, returned: { awayFrom: 1, isMet: true } };
    expect(new Wakeups(received).state).toEqual(received);
  });

  test('the new run provisions an agent that was never provisioned', async () => {
    const agent = lab.agent();
    const supervisor = await lab.supervise(agent, { provisioned: false, desired: 'stopped' });
    for (let time = 1; (await supervisor.runId()) === supervisor.firstRunId; time++) {
      expect(time).toBeLessThan(MANY);
      await supervisor.request('configure', `configure-${time}`);
      expect(await agent.end(`configure-${time}`)).toBe('succeeded');
    }

    agent.on('awaitReady', refuse('AgentNotReadyError'));
    await supervisor.request('start', 'fails');
    expect(await agent.end('fails')).toBe('failed');
    expect(removals(agent)).toEqual(['removeContainer', 'removeNetwork']);
    expect(agent.steps).toContain('undoVolume');
  });
});
