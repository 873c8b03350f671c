import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { BRING_UP, type FakeAgent, type Step } from './support/fake-agent.js';
import { Gate } from './support/gate.js';
import { refuse, stumble, untilCancelled } from './support/misbehaviours.js';
import { WorkflowLab } from './support/workflow-lab.js';

type Kind = 'configure' | 'update' | 'reset-memory' | 'restore';

const KINDS: readonly Kind[] = ['configure', 'update', 'reset-memory', 'restore'];
/** The kinds that replace the agent's volume. */
const WITH_VOLUME: readonly Kind[] = ['update', 'reset-memory', 'restore'];

/** Steps of each kind without `bringUp`, which is checked by its first and last step only. */
const STEPS: Readonly<Record<Kind, readonly string[]>> = {
  configure: ['stopContainer', 'beginRelease'],
  update: ['findImage', 'stopContainer', 'retainContainer', 'makeVolume', 'beginRelease'],
  'reset-memory': ['stopContainer', 'retainContainer', 'makeVolume', 'beginRelease'],
  restore: ['stopContainer', 'retainContainer', 'makeVolume', 'beginRelease'],
};
const KEEP = ['keepRelease', 'removeLeftovers'];
const ROLL_BACK = ['rollBackRelease', 'stopContainer', 'restoreContainer'];
const REMOVAL = ['removeContainer', 'removeNetwork', 'removeVolume'];

/**
 * Steps that fail after the agent was stopped: every step of one kind, and only the additional steps of
 * the others.
 */
const FAILING = KINDS.flatMap((kind) => {
  const own = STEPS[kind].filter((step) => !/findImage|beginRelease/.test(step));
  const ofBringUp = kind === 'update' ? BRING_UP.filter(isDockers) : ['awaitReady'];
  return [...own, ...ofBringUp].map((step) => [kind, step as Step] as const);
});

let lab: WorkflowLab;
beforeAll(async () => {
  lab = await WorkflowLab.open();
});
afterEach(() => lab.endSupervisors());
afterAll(() => lab?.close());

function isDockers(step: string): boolean {
  // Failures before the stop have a test of their own.
  return step !== 'reservePort' && step !== 'requireVolume';
}

/** Returns the completed steps, each once, without retries. */
const done = (agent: FakeAgent) =>
  agent.steps.filter(
    (step) => !/#|^(recordT|beginOperation|finish|watch|look|recordRunning)/.test(step),
  );

/** Returns the completed steps, with a bring-up as one step. */
function summary(agent: FakeAgent): string[] {
  const steps: string[] = [];
  for (const step of done(agent)) {
    if (step === 'reservePort') steps.push('bringUp');
    else if (!BRING_UP.includes(step)) steps.push(step);
  }
  return steps;
}

/** Fails the step on its first call only: for the new container, not for the old one. */
function failOnce(agent: FakeAgent, step: Step): FakeAgent {
  let failed = false;
  return agent.on(step, (attempt) => {
    if (failed) return;
    failed = true;
    return refuse()(attempt);
  });
}

describe('replacement of a container', () => {
  test.each(KINDS)(
    'a replacement by %s of a running agent runs its steps in order',
    async (kind) => {
      const agent = lab.agent();
      const supervisor = await lab.supervise(agent);
      await supervisor.request(kind, 'op');
      expect(await agent.end('op')).toBe('succeeded');
      expect(summary(agent)).toEqual([...STEPS[kind], 'bringUp', ...KEEP]);
      expect(agent.overlapped).toBe(false);
    },
  );

  test.each([
    ['configure', []],
    ['update', ['findImage', 'recordUpdate']],
    ['reset-memory', [...STEPS['reset-memory'], ...KEEP]],
    ['restore', [...STEPS.restore, ...KEEP]],
  ] as const)('a replacement by %s of a stopped agent starts nothing', async (kind, steps) => {
    const agent = lab.agent();
    const supervisor = await lab.supervise(agent, { desired: 'stopped' });
    await supervisor.request(kind, 'op');
    expect(await agent.end('op')).toBe('succeeded');
    expect(summary(agent)).toEqual(steps);
  });

  test.each([
    ['configure', []],
    ['update', ['findImage', 'recordUpdate']],
    ['reset-memory', []],
    ['restore', []],
  ] as const)(
    'a replacement by %s of an agent that never ran touches no container',
    async (kind, steps) => {
      const agent = lab.agent();
      const supervisor = await lab.supervise(agent, { provisioned: false });
      await supervisor.request(kind, 'op');
      expect(await agent.end('op')).toBe('succeeded');
      // The workflow reads the agent's state, because its supervisor did not receive it.
      expect(summary(agent)).toEqual(['loadSupervisedState', ...steps]);
    },
  );

  test('an update to the image that already runs ends at once', async () => {
    const agent = lab.agent();
    agent.imageIsNew = false;
    const supervisor = await lab.supervise(agent);
    await supervisor.request('update', 'op');
    expect(await agent.end('op')).toBe('succeeded');
    expect(summary(agent)).toEqual(['findImage']);
  });

  test('an update to an unavailable image leaves the agent running', async () => {
    const agent = lab.agent().on('findImage', refuse('ImageUnavailableError'));
    const supervisor = await lab.supervise(agent);
    await supervisor.request('update', 'op');
    expect(await agent.end('op')).toBe('failed');
    expect(summary(agent)).toEqual(['findImage']);
    expect(agent.finished[0]?.error).toBe('refused: ImageUnavailableError');
  });

  test('a replacement succeeds even if its leftovers cannot be removed', async () => {
    const agent = lab.agent().on('removeLeftovers', refuse());
    const supervisor = await lab.supervise(agent);
    await supervisor.request('update', 'op');
    expect(await agent.end('op')).toBe('succeeded');
  });

  test.each(FAILING)('a replacement by %s is rolled back when %s fails', async (kind, step) => {
    const agent = failOnce(lab.agent(), step);
    const supervisor = await lab.supervise(agent);
    await supervisor.request(kind, 'op');
    expect(await agent.end('op')).toBe('failed');

    const steps = summary(agent);
    const back = [...ROLL_BACK, 'bringUp', 'removeLeftovers'];
    expect(steps.slice(-back.length)).toEqual(back);
    expect(steps).not.toContain('keepRelease');
    expect(agent.finished[0]?.error).toContain('rolled back');
    expect(agent.overlapped).toBe(false);
    await agent.reached('watchHealth');
  });

  test.each(WITH_VOLUME.filter((kind) => kind !== 'update'))(
    'a replacement by %s of a stopped agent is rolled back without a start',
    async (kind) => {
      const agent = lab.agent().on('makeVolume', refuse());
      const supervisor = await lab.supervise(agent, { desired: 'stopped' });
      await supervisor.request(kind, 'op');
      expect(await agent.end('op')).toBe('failed');
      expect(summary(agent).slice(-4)).toEqual([...ROLL_BACK, 'removeLeftovers']);
      expect(summary(agent)).not.toContain('bringUp');
    },
  );

  test('a replacement retries through a Docker outage, both forwards and in the rollback', async () => {
    const agent = lab
      .agent()
      .on('retainContainer', stumble(3))
      .on('restoreContainer', stumble(3))
      .on('makeVolume', refuse());
    const supervisor = await lab.supervise(agent);
    await supervisor.request('update', 'op');
    expect(await agent.end('op')).toBe('failed');
    expect(agent.steps).toContain('retainContainer#4');
    expect(agent.steps).toContain('restoreContainer#4');
    expect(agent.finished[0]?.error).toContain('rolled back');
  });

  test('a replacement whose rollback fails reports both errors', async () => {
    const agent = lab.agent().on('awaitReady', refuse('AgentNotReadyError'));
    agent.on('restoreContainer', refuse('ForeignContainerError'));
    const supervisor = await lab.supervise(agent);
    await supervisor.request('update', 'op');
    expect(await agent.end('op')).toBe('failed');
    expect(agent.finished[0]?.error).toContain('AgentNotReadyError');
    expect(agent.finished[0]?.error).toContain('ForeignContainerError');
    expect(summary(agent)).toContain('rollBackRelease');
    // The new container and volume are of no use after a failed rollback.
    expect(agent.steps).toContain('removeLeftovers');
  });

  test('a replacement resumes its rollback when the worker ends during a failing health gate', async () => {
    await using lab = await WorkflowLab.open({ resumable: true });
    const gate = new Gate();
    let failed = false;
    const agent = lab.agent().on('awaitReady', async (attempt) => {
      if (failed) return;
      await gate.pass();
      failed = true;
      return refuse('AgentNotReadyError')(attempt);
    });
    const supervisor = await lab.supervise(agent);
    await supervisor.request('update', 'op');
    await agent.reached('awaitReady');
    const stopped = lab.stopWorkers();
    gate.open();
    await stopped;
    await lab.startWorkers();

    expect(await agent.end('op')).toBe('failed');
    const back = [...ROLL_BACK, 'bringUp', 'removeLeftovers'];
    expect(summary(agent)).toEqual([...STEPS.update, 'bringUp', ...back]);
  });
});

describe('deletion during a replacement', () => {
  const MIDDLE = [
    ['configure', 'stopContainer'],
    ['update', 'findImage'],
    ['update', 'retainContainer'],
    ['update', 'makeVolume'],
    ['update', 'awaitReady'],
    ['update', 'removeLeftovers'],
    ['reset-memory', 'makeVolume'],
    ['restore', 'createContainer'],
  ] as const;

  test.each(MIDDLE)(
    'a deletion takes over from %s in %s and does not roll it back',
    async (kind, step) => {
      const agent = lab.agent().on(step, untilCancelled);
      const supervisor = await lab.supervise(agent);
      await supervisor.request(kind, 'op');
      await agent.reached(step);
      await supervisor.request('delete', 'delete');

      expect(await agent.end('delete')).toBe('succeeded');
      expect(agent.finished.map(({ status }) => status)).toEqual(['cancelled', 'succeeded']);
      expect(summary(agent).slice(-3)).toEqual(REMOVAL);
      expect(summary(agent)).not.toContain('rollBackRelease');
      expect(agent.overlapped).toBe(false);
      await supervisor.ended();
    },
  );

  test.each(['restoreContainer', 'awaitReady'] as const)(
    'a deletion takes over from a rollback in %s',
    async (step) => {
      const agent = lab.agent().on('makeVolume', refuse()).on(step, untilCancelled);
      const supervisor = await lab.supervise(agent);
      await supervisor.request('update', 'op');
      await agent.reached(step);
      await supervisor.request('delete', 'delete');

      expect(await agent.end('delete')).toBe('succeeded');
      expect(agent.finished.map(({ status }) => status)).toEqual(['cancelled', 'succeeded']);
      expect(summary(agent).slice(-3)).toEqual(REMOVAL);
      expect(agent.overlapped).toBe(false);
    },
  );
});
