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
/** Steps that roll a provisioning back. */
const UNDO = ['removeContainer', 'removeNetwork', 'undoVolume', 'releasePort'];
const CONFIGURE = ['requireVolume', 'stopContainer', ...BRING_UP, 'keepRelease', 'removeLeftovers'];
const KINDS = ['start', 'stop', 'restart', 'configure'] as const;

/** For each operation, a step in the middle of it on a running agent. */
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

describe('operation', () => {
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
    '%s of an agent that is %s executes its steps in order',
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
    '%s of an agent that was never provisioned executes no step',
    async (kind) => {
      const agent = lab.agent();
      const supervisor = await lab.supervise(agent, { provisioned: false });
      await supervisor.request(kind, 'op');
      expect(await agent.end('op')).toBe('succeeded');
      expect(agent.containerSteps).toEqual([]);
    },
  );

  test.each(KINDS)(
    'a failed %s is recorded with its reason and does not block the next operation',
    async (kind) => {
      const agent = lab.agent().on(MIDDLE[kind], refuse());
      const supervisor = await lab.supervise(agent);
      await supervisor.request(kind, 'fails');

      expect(await agent.end('fails')).toBe('failed');
      expect(agent.finished[0]?.error).toEqual(expect.any(String));

      // The time-skipping server loses a workflow task if a check is cancelled as it ends.
      await agent.went(kind === 'stop' ? 'running (stop_refused)' : 'running (healthy)');
      agent.behave(MIDDLE[kind]);
      await supervisor.request('restart', 'follows');
      expect(await agent.end('follows')).toBe('succeeded');
    },
  );

  test('a withdrawn operation is not executed', async () => {
    const agent = lab.agent();
    agent.beginnings.set('op', 'withdrawn');
    const supervisor = await lab.supervise(agent);
    await supervisor.request('stop', 'op');
    await supervisor.request('restart', 'next');

    expect(await agent.end('next')).toBe('succeeded');
    expect(agent.finished.map(({ id }) => id)).toEqual(['next']);
    expect(agent.containerSteps).toEqual(['stopContainer', ...BRING_UP]);
  });

  test('a withdrawn operation does not change whether the agent should run', async () => {
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

  test('the agent is stopped later if the stop operation failed', async () => {
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

  test('an operation without steps does not mark an agent as stopped whose stop failed', async () => {
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

  test("an operation that stops the container ignores the container's end event", async () => {
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

  test('an operation on a removed agent ends the supervisor', async () => {
    const agent = lab.agent();
    agent.beginnings.set('op', 'gone');
    const supervisor = await lab.supervise(agent, { desired: 'stopped' });
    await supervisor.request('start', 'op');
    await supervisor.ended();
    expect(agent.steps).toEqual(['beginOperation']);
  });

  test('an operation is recorded as cancelled if the supervisor is cancelled', async () => {
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

describe('operation request', () => {
  test.each(KINDS)('a second request for %s joins the operation in progress', async (kind) => {
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

  test('a request repeated under its id gets the same answer, even after the operation has ended', async () => {
    const agent = lab.agent();
    const supervisor = await lab.supervise(agent);
    expect(await supervisor.request('stop', 'first', 'update')).toBe('first');
    expect(await agent.end('first')).toBe('succeeded');
    expect(await supervisor.request('stop', 'second', 'update')).toBe('first');
    expect(agent.begun).toEqual(['first']);
  });

  test.each([...KINDS, 'delete'] as const)(
    'a request is refused while a %s runs',
    async (running) => {
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
    },
  );

  test.each(KINDS)('a request for %s is refused while the agent is provisioned', async (kind) => {
    const gate = new Gate();
    const agent = lab.agent().on('createContainer', gate.pass);
    const supervisor = await lab.supervise(agent, provisioningOf('provision'));
    await agent.reached('createContainer');
    expect(await refusalOf(supervisor.request(kind, 'op'))).toBe(OPERATION_CONFLICT);
    gate.open();
    expect(await agent.end('provision')).toBe('succeeded');
  });

  test('a request that arrives while the end of an operation is recorded is executed next', async () => {
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

  test('one of two different concurrent requests is admitted, the other refused', async () => {
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

describe('provisioning', () => {
  test('a provisioning is executed even if another request has started the supervisor', async () => {
    const agent = lab.agent();
    const supervisor = await lab.supervise(agent, { provisioned: false });
    await supervisor.request('configure', 'configure');
    expect(await agent.end('configure')).toBe('succeeded');

    await lab.provisionAgain(agent, 'provision');
    expect(await agent.end('provision')).toBe('succeeded');
    // Duplicates are removed: the operation begins again if it interrupts a start of the agent.
    expect([...new Set(agent.begun)]).toEqual(['configure', 'provision']);
    await agent.reached('watchHealth');
  });

  test('a provisioning requested repeatedly, during and after it, is executed once', async () => {
    const gate = new Gate();
    const agent = lab.agent().on('createContainer', gate.pass);
    await lab.supervise(agent, provisioningOf('provision'));
    await agent.reached('createContainer');
    await lab.provisionAgain(agent, 'provision');
    gate.open();
    expect(await agent.end('provision')).toBe('succeeded');
    await agent.reached('watchHealth'); // another provisioning would come before this check
    expect(agent.begun).toEqual(['provision']);
    const others = agent.containerSteps.filter((step) => !BRING_UP.includes(step));
    expect(others).toEqual(['createVolume']);
  });

  test('after a failed provisioning, the supervisor provisions at the next start', async () => {
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

  test('after a successful provisioning, a failed start removes nothing', async () => {
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

describe('deletion', () => {
  test.each(KINDS)('a deletion interrupts a %s, which is recorded as cancelled', async (kind) => {
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
    'a deletion interrupts a provisioning in %s, which is rolled back first',
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

  test('a deletion is admitted after a failed provisioning', async () => {
    const agent = lab.agent().on('ensureImage', refuse());
    const supervisor = await lab.supervise(agent, provisioningOf('provision'));
    expect(await agent.end('provision')).toBe('failed');
    await supervisor.request('delete', 'delete');
    expect(await agent.end('delete')).toBe('succeeded');
    await supervisor.ended();
  });

  test('a second deletion request joins the first', async () => {
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
