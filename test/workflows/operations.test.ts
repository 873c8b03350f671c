import { randomUUID } from 'node:crypto';
import { WorkflowFailedError } from '@temporalio/client';
import { CancelledFailure } from '@temporalio/common';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { RequestedKind } from '../../src/types/operation-kinds.js';
import { OPERATION_CONFLICT } from '../../workflows/supervise-agent-messages.js';
import { BRING_UP, type ContainerStep } from './support/fake-agent.js';
import { Gate } from './support/gate.js';
import { refuse, untilCancelled } from './support/misbehaviours.js';
import { refusalOf } from './support/refusal.js';
import { WorkflowLab, provisioningOf } from './support/workflow-lab.js';

const REMOVAL = ['removeContainer', 'removeNetwork', 'removeVolume'];
/** What undoes a provisioning. */
const UNDO = ['removeContainer', 'removeNetwork', 'undoVolume', 'releasePort'];
const CONFIGURE = ['requireVolume', 'stopContainer', ...BRING_UP, 'keepRelease', 'removeLeftovers'];
const KINDS = ['start', 'stop', 'restart', 'configure'] as const;

/** A step in the middle of each operation on a running agent. */
const MIDDLE = {
  start: 'startContainer',
  stop: 'stopContainer',
  restart: 'awaitReady',
  configure: 'createContainer',
  delete: 'removeNetwork',
} as const satisfies Partial<Record<RequestedKind, ContainerStep>>;

let lab: WorkflowLab;
beforeAll(async () => {
  lab = await WorkflowLab.open();
});
afterEach(() => lab.endSupervisors());
afterAll(() => lab?.close());

describe('an operation', () => {
  test.each([
    ['start', 'stopped', BRING_UP],
    ['start', 'running', BRING_UP],
    ['stop', 'running', ['stopContainer']],
    ['restart', 'running', ['stopContainer', ...BRING_UP]],
    ['restart', 'stopped', ['stopContainer', ...BRING_UP]],
    ['configure', 'running', CONFIGURE],
    ['configure', 'stopped', []],
    ['delete', 'running', REMOVAL],
    ['delete', 'stopped', REMOVAL],
  ] as const)(
    '%s of an agent that is %s takes its steps in order',
    async (kind, desired, steps) => {
      const agent = lab.agent();
      const supervisor = await lab.supervise(agent, { desired });

      expect(await supervisor.request(kind, 'op')).toBe('op');
      expect(await agent.end('op')).toBe('succeeded');

      expect(agent.containerSteps).toEqual(steps);
      expect(agent.begun).toEqual(['op']);
      expect(agent.finished).toEqual([{ id: 'op', status: 'succeeded', error: null }]);
    },
  );

  test.each(['stop', 'configure'] as const)(
    '%s of an agent that was never provisioned touches nothing',
    async (kind) => {
      const agent = lab.agent();
      const supervisor = await lab.supervise(agent, { provisioned: false });
      await supervisor.request(kind, 'op');
      expect(await agent.end('op')).toBe('succeeded');
      expect(agent.containerSteps).toEqual([]);
    },
  );

  test.each(KINDS)('%s that fails is recorded with its reason, and others follow', async (kind) => {
    const agent = lab.agent().on(MIDDLE[kind], refuse());
    const supervisor = await lab.supervise(agent);
    await supervisor.request(kind, 'fails');

    expect(await agent.end('fails')).toBe('failed');
    expect(agent.finished[0]?.error).toEqual(expect.any(String));

    // The server that skips time loses a workflow task in which a check is cancelled as it ends.
    await agent.went(kind === 'stop' ? 'running (stop_refused)' : 'running (healthy)');
    agent.behave(MIDDLE[kind]);
    await supervisor.request('restart', 'follows');
    expect(await agent.end('follows')).toBe('succeeded');
  });

  test('that was taken back meanwhile is not carried out', async () => {
    const agent = lab.agent();
    agent.beginnings.set('op', 'withdrawn');
    const supervisor = await lab.supervise(agent);
    await supervisor.request('stop', 'op');
    await supervisor.request('restart', 'next');

    expect(await agent.end('next')).toBe('succeeded');
    expect(agent.finished.map(({ id }) => id)).toEqual(['next']);
    expect(agent.containerSteps).toEqual(['stopContainer', ...BRING_UP]);
  });

  test('that was taken back leaves it open whether the agent should run', async () => {
    const agent = lab.agent();
    agent.beginnings.set('op', 'withdrawn');
    const supervisor = await lab.supervise(agent, { desired: 'stopped' });
    await supervisor.request('start', 'op');
    const refusal = () => refusalOf(supervisor.request('configure', 'next', randomUUID()));
    await expect.poll(refusal).toBeUndefined();

    expect(await agent.end('next')).toBe('succeeded');
    expect(agent.steps).not.toContain('watchHealth');
    expect(agent.containerSteps).toEqual([]);
  });

  test('that should have stopped the agent, and failed, is made good', async () => {
    let stops = 0;
    const agent = lab.agent().on('stopContainer', (attempt) => {
      if (++stops === 1) return refuse()(attempt);
    });
    const supervisor = await lab.supervise(agent);
    await supervisor.request('stop', 'op');
    expect(await agent.end('op')).toBe('failed');
    await agent.went('stopped (stopped)');
    expect(agent.containerSteps).toEqual(['stopContainer', 'stopContainer']);
  });

  test('that is only noted does not stop an agent that could not be stopped', async () => {
    const agent = lab.agent().on('stopContainer', refuse('LastingRefusalError'));
    const supervisor = await lab.supervise(agent);
    await supervisor.request('stop', 'stop');
    expect(await agent.end('stop')).toBe('failed');
    await agent.went('running (stop_refused)');
    agent.behave('stopContainer');
    await supervisor.request('configure', 'noted');
    expect(await agent.end('noted')).toBe('succeeded');
    await agent.went('running (stop_refused)', 'stopped (stopped)');
  });

  test('that ends the container asks nobody how it ended', async () => {
    const agent = lab.agent();
    const supervisor = await lab.supervise(agent);
    agent.on('stopContainer', () => supervisor.containerEnded({ cause: 'stop' }));
    await supervisor.request('stop', 'stop');
    expect(await agent.end('stop')).toBe('succeeded');
    agent.behave('stopContainer');
    await supervisor.request('restart', 'restart');
    expect(await agent.end('restart')).toBe('succeeded');
    expect(agent.containerSteps).toEqual(['stopContainer', 'stopContainer', ...BRING_UP]);
  });

  test('on an agent that is no more ends the supervisor', async () => {
    const agent = lab.agent();
    agent.beginnings.set('op', 'gone');
    const supervisor = await lab.supervise(agent, { desired: 'stopped' });
    await supervisor.request('start', 'op');
    await supervisor.ended();
    expect(agent.steps).toEqual(['beginOperation']);
  });

  test('is recorded as cancelled when somebody cancels the supervisor', async () => {
    const agent = lab.agent().on('stopContainer', untilCancelled);
    const supervisor = await lab.supervise(agent);
    await supervisor.request('stop', 'op');
    await agent.reached('stopContainer');
    await supervisor.handle.cancel();

    expect(await agent.end('op')).toBe('cancelled');
    const ended = await supervisor.ended().catch((error: unknown) => error);
    expect(ended).toBeInstanceOf(WorkflowFailedError);
    expect(ended).toHaveProperty('cause', expect.any(CancelledFailure));
  });
});

describe('a request', () => {
  test.each(KINDS)('for %s that comes twice is one operation', async (kind) => {
    const gate = new Gate();
    const agent = lab.agent().on(MIDDLE[kind], gate.pass);
    const supervisor = await lab.supervise(agent);

    expect(await supervisor.request(kind, 'first')).toBe('first');
    await agent.reached(MIDDLE[kind]);
    expect(await supervisor.request(kind, 'second')).toBe('first');
    gate.open();
    expect(await agent.end('first')).toBe('succeeded');
    expect(agent.begun).toEqual(['first']);
  });

  test('that is repeated under its id is answered as before, also when it is over', async () => {
    const agent = lab.agent();
    const supervisor = await lab.supervise(agent);
    expect(await supervisor.request('stop', 'first', 'update')).toBe('first');
    expect(await agent.end('first')).toBe('succeeded');
    expect(await supervisor.request('stop', 'second', 'update')).toBe('first');
    expect(agent.begun).toEqual(['first']);
  });

  test.each([...KINDS, 'delete'] as const)('is refused while a %s runs', async (running) => {
    const gate = new Gate();
    const agent = lab.agent().on(MIDDLE[running], gate.pass);
    const supervisor = await lab.supervise(agent);
    await supervisor.request(running, 'runs');
    await agent.reached(MIDDLE[running]);

    for (const kind of KINDS.filter((other) => other !== running)) {
      expect(await refusalOf(supervisor.request(kind, kind))).toBe(OPERATION_CONFLICT);
    }
    gate.open();
    expect(await agent.end('runs')).toBe('succeeded');
    expect(agent.begun).toEqual(['runs']);
  });

  test.each(KINDS)('for %s is refused while the agent is provisioned', async (kind) => {
    const gate = new Gate();
    const agent = lab.agent().on('createContainer', gate.pass);
    const supervisor = await lab.supervise(agent, provisioningOf('provision'));
    await agent.reached('createContainer');
    expect(await refusalOf(supervisor.request(kind, 'op'))).toBe(OPERATION_CONFLICT);
    gate.open();
    expect(await agent.end('provision')).toBe('succeeded');
  });

  test('that comes while the end of another is written down follows it', async () => {
    const gate = new Gate();
    const agent = lab.agent().on('finishOperation', gate.pass);
    const supervisor = await lab.supervise(agent);
    await supervisor.request('stop', 'first');
    await agent.reached('finishOperation');
    expect(await supervisor.request('restart', 'second')).toBe('second');
    expect(agent.begun).toEqual(['first']);
    gate.open();
    expect(await agent.end('second')).toBe('succeeded');
  });

  test('and another at the same moment: one is admitted, the other refused', async () => {
    const gate = new Gate();
    const agent = lab.agent().on('ensureImage', gate.pass).on('stopContainer', gate.pass);
    const supervisor = await lab.supervise(agent);
    const refusals = await Promise.all([
      refusalOf(supervisor.request('start', 'start')),
      refusalOf(supervisor.request('stop', 'stop')),
    ]);
    gate.open();

    expect(refusals.toSorted()).toEqual([OPERATION_CONFLICT, undefined]);
    const admitted = refusals[0] === undefined ? 'start' : 'stop';
    expect(await agent.end(admitted)).toBe('succeeded');
    expect(agent.begun).toEqual([admitted]);
  });
});

describe('a provisioning', () => {
  test('is carried out also when another request has started the supervisor', async () => {
    const agent = lab.agent();
    const supervisor = await lab.supervise(agent, { provisioned: false });
    await supervisor.request('configure', 'configure');
    expect(await agent.end('configure')).toBe('succeeded');

    await lab.provisionAgain(agent, 'provision');
    expect(await agent.end('provision')).toBe('succeeded');
    // Again is the same: it is begun once more where it may interrupt what brings the agent up.
    expect([...new Set(agent.begun)]).toEqual(['configure', 'provision']);
    await agent.reached('watchHealth');
  });

  test('that is told again and again, while it runs and afterwards, is one', async () => {
    const gate = new Gate();
    const agent = lab.agent().on('createContainer', gate.pass);
    await lab.supervise(agent, provisioningOf('provision'));
    await agent.reached('createContainer');
    await lab.provisionAgain(agent, 'provision');
    gate.open();
    expect(await agent.end('provision')).toBe('succeeded');
    await agent.reached('watchHealth'); // another one would go first
    expect(agent.begun).toEqual(['provision']);
    const others = agent.containerSteps.filter((step) => !BRING_UP.includes(step));
    expect(others).toEqual(['createVolume']);
  });

  test('that fails leaves a supervisor that provisions at the next start', async () => {
    const agent = lab.agent().on('awaitReady', refuse('AgentNotReadyError'));
    const supervisor = await lab.supervise(agent, provisioningOf('provision'));
    expect(await agent.end('provision')).toBe('failed');
    expect(agent.port).toBe(0);
    expect(agent.memory?.state).toBe('stopped');

    await supervisor.request('start', 'fails');
    expect(await agent.end('fails')).toBe('failed');
    expect(agent.containerSteps.slice(-4)).toEqual(UNDO);

    agent.behave('awaitReady');
    await supervisor.request('start', 'succeeds');
    expect(await agent.end('succeeds')).toBe('succeeded');
    await agent.reached('watchHealth');
  });

  test('that succeeded is not made again: a start that fails takes nothing away', async () => {
    const agent = lab.agent();
    const supervisor = await lab.supervise(agent, provisioningOf('provision'));
    expect(await agent.end('provision')).toBe('succeeded');
    await supervisor.request('stop', 'stop');
    expect(await agent.end('stop')).toBe('succeeded');
    agent.on('awaitReady', refuse('AgentNotReadyError'));
    await supervisor.request('start', 'start');
    expect(await agent.end('start')).toBe('failed');
    const others = agent.containerSteps.filter((step) => !BRING_UP.includes(step));
    expect(others).toEqual(['createVolume', 'stopContainer']);
  });
});

describe('a deletion', () => {
  test.each(KINDS)('takes over from a %s, which is recorded as cancelled', async (kind) => {
    const agent = lab.agent().on(MIDDLE[kind], untilCancelled);
    const supervisor = await lab.supervise(agent);
    await supervisor.request(kind, 'op');
    await agent.reached(MIDDLE[kind]);

    expect(await supervisor.request('delete', 'delete')).toBe('delete');
    expect(await agent.end('delete')).toBe('succeeded');
    expect(agent.finished).toEqual([
      { id: 'op', status: 'cancelled', error: null },
      { id: 'delete', status: 'succeeded', error: null },
    ]);
    expect(agent.containerSteps.slice(-3)).toEqual(REMOVAL);
    expect(agent.overlapped).toBe(false);
    await supervisor.ended();
  });

  test.each(['ensureImage', 'createContainer', 'awaitReady'] as const)(
    'takes over from a provisioning in %s, which is undone before',
    async (step) => {
      const agent = lab.agent().on(step, untilCancelled);
      const supervisor = await lab.supervise(agent, provisioningOf('provision'));
      await agent.reached(step);
      await supervisor.request('delete', 'delete');

      expect(await agent.end('delete')).toBe('succeeded');
      expect(agent.finished.map(({ status }) => status)).toEqual(['cancelled', 'succeeded']);
      expect(agent.containerSteps.slice(-7)).toEqual([...UNDO, ...REMOVAL]);
      await supervisor.ended();
    },
  );

  test('is let in after a provisioning that failed', async () => {
    const agent = lab.agent().on('ensureImage', refuse());
    const supervisor = await lab.supervise(agent, provisioningOf('provision'));
    expect(await agent.end('provision')).toBe('failed');
    await supervisor.request('delete', 'delete');
    expect(await agent.end('delete')).toBe('succeeded');
    await supervisor.ended();
  });

  test('that comes twice is one', async () => {
    const gate = new Gate();
    const agent = lab.agent().on('removeNetwork', gate.pass);
    const supervisor = await lab.supervise(agent);
    await supervisor.request('delete', 'first');
    await agent.reached('removeNetwork');
    expect(await supervisor.request('delete', 'second')).toBe('first');
    gate.open();
    await supervisor.ended();
    expect(agent.begun).toEqual(['first']);
  });
});
