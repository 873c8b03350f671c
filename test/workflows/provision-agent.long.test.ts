import { ActivityFailure, ApplicationFailure, TimeoutFailure } from '@temporalio/common';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { PROVISIONING_FAILED } from '../../workflows/provision-agent.js';
import type { FakeAgent, Step } from './support/fake-agent.js';
import { hang, refuse, stumble, untilCancelled } from './support/misbehaviours.js';
import {
  CONTAINER_STEPS,
  UNDO_ALL,
  UNDO_PORT,
  failureOf,
  undone,
} from './support/provisionings.js';
import { WorkflowLab } from './support/workflow-lab.js';

let lab: WorkflowLab;
beforeAll(async () => {
  lab = await WorkflowLab.open();
});
afterAll(() => lab?.close());

async function provisioningFailure(agent: FakeAgent, inLab = lab): Promise<ApplicationFailure> {
  const failure = await failureOf(await inLab.provision(agent));
  if (!(failure instanceof ApplicationFailure)) {
    throw new Error('the provisioning did not fail as expected', { cause: failure });
  }
  expect(failure.type).toBe(PROVISIONING_FAILED);
  expect(failure.nonRetryable).toBe(true);
  return failure;
}

describe('successful provisioning', () => {
  test('executes its steps in order and rolls none back', async () => {
    const agent = lab.agent();
    await (await lab.provision(agent)).result();

    const [first, ...rest] = agent.steps;
    expect(first).toBe('reservePort');
    expect(rest.slice(0, 3).sort()).toEqual(['createNetwork', 'createVolume', 'ensureImage']);
    expect(rest.slice(3)).toEqual([
      'createContainer',
      'startContainer',
      'awaitReady',
      'recordRunning',
    ]);
    expect(agent.overlapped).toBe(false);
  });
});

describe.each(CONTAINER_STEPS)('failure of %s', (step) => {
  test('a permanent failure rolls everything back, newest step first', async () => {
    const agent = lab.agent().on(step, refuse());
    const failure = await provisioningFailure(agent);

    expect(undone(agent)).toEqual(UNDO_ALL);
    expect(failure.details).toEqual([{ leftOver: [] }]);
    expect(failure.cause).toBeInstanceOf(ActivityFailure);
    expect(failure.cause?.cause).toMatchObject({ type: 'RefusedError' });
    expect(agent.port).toBe(0);
    expect(agent.steps).not.toContain('recordRunning');
  });

  test('a step that keeps failing is retried, then rolled back when the attempts are used up', async () => {
    const agent = lab.agent().on(step, stumble());
    const failure = await provisioningFailure(agent);

    expect(agent.steps).toContain(`${step}#2`);
    expect(undone(agent)).toEqual(UNDO_ALL);
    expect(failure.cause?.cause).toMatchObject({ type: 'StumbledError' });
  });

  test('a step that fails twice is retried, and nothing is rolled back', async () => {
    const agent = lab.agent().on(step, stumble(2));
    await (await lab.provision(agent)).result();

    expect(agent.steps).toContain(`${step}#3`);
    expect(undone(agent)).toEqual([]);
    expect(agent.steps.at(-1)).toBe('recordRunning');
  });
});

describe('failure of a record', () => {
  test('without a free port, nothing else is begun and only the port is released', async () => {
    const agent = lab.agent().on('reservePort', refuse('NoPortFreeError'));
    const failure = await provisioningFailure(agent);

    expect(failure.cause).toMatchObject({ type: 'NoPortFreeError' });
    expect(agent.steps).toEqual(['reservePort', ...UNDO_PORT]);
  });

  test('a permanent failure to record the agent as running rolls everything back', async () => {
    const agent = lab.agent().on('recordRunning', refuse());
    await provisioningFailure(agent);
    expect(undone(agent)).toEqual(UNDO_ALL);
  });

  test.each(['reservePort', 'recordRunning'] as const)(
    '%s is retried until the database is back',
    async (step) => {
      const agent = lab.agent().on(step, stumble(4));
      await (await lab.provision(agent)).result();
      expect(agent.steps).toContain(`${step}#5`);
      expect(undone(agent)).toEqual([]);
    },
  );
});

describe('failure of a rollback', () => {
  const undoings: readonly Step[] = [
    'removeContainer',
    'removeNetwork',
    'undoVolume',
    'releasePort',
  ];
  test.each(undoings)(
    'a failed %s does not stop the rollback and is named in the error',
    async (undoing) => {
      const agent = lab
        .agent()
        .on('awaitReady', refuse('AgentNotReadyError'))
        .on(undoing, refuse());
      const failure = await provisioningFailure(agent);

      expect(undone(agent)).toEqual(UNDO_ALL);
      expect(failure.details).toEqual([{ leftOver: [undoing] }]);
      expect(failure.cause?.cause).toMatchObject({ type: 'AgentNotReadyError' });
    },
  );

  test('a rollback step that keeps failing is given up, so that the failure is reported', async () => {
    const agent = lab.agent().on('startContainer', refuse()).on('removeNetwork', stumble());
    const failure = await provisioningFailure(agent);

    expect(agent.steps).toContain('removeNetwork#10');
    expect(failure.details).toEqual([{ leftOver: ['removeNetwork'] }]);
    expect(undone(agent)).toEqual(UNDO_ALL);
  });

  test('if all rollback steps fail, the error names them in order', async () => {
    const agent = lab.agent().on('createNetwork', refuse());
    for (const undoing of undoings) agent.on(undoing, refuse());
    const failure = await provisioningFailure(agent);
    expect(failure.details).toEqual([{ leftOver: UNDO_ALL }]);
  });
});

describe('port or subnet in use', () => {
  test.each([
    ['PortTakenError', 'startContainer'],
    ['PortTakenError', 'createContainer'],
    ['SubnetTakenError', 'createNetwork'],
  ] as const)('%s from %s leads to the next port', async (type, step) => {
    const ports: number[] = [];
    const agent = lab.agent();
    agent.on(step, () => {
      ports.push(agent.port);
      if (ports.length <= 2) return refuse(type)(1);
    });
    await (await lab.provision(agent)).result();

    expect(ports).toEqual([40_000, 40_001, 40_002]);
    // Resources of the refused port are removed before the next attempt; the volume stays.
    expect(undone(agent)).toEqual([
      'removeContainer',
      'removeNetwork',
      'removeContainer',
      'removeNetwork',
    ]);
    expect(agent.steps.filter((taken) => taken === 'ensureImage')).toHaveLength(1);
    expect(agent.steps.filter((taken) => taken === 'createVolume')).toHaveLength(1);
    expect(agent.steps.at(-1)).toBe('recordRunning');
  });

  test('thirty networks of another program are skipped after the first conflict', async () => {
    const agent = lab.agent().on('createNetwork', () => {
      if (agent.port < 40_030) return refuse('SubnetTakenError')(1);
    });
    agent.takenPlaces = [{ first: 40_000, last: 40_029 }];
    await (await lab.provision(agent)).result();

    expect(agent.port).toBe(40_030);
    expect(agent.steps.filter((step) => step === 'createNetwork')).toHaveLength(2);
  });

  test('fails after 20 ports and rolls everything back', async () => {
    const agent = lab.agent().on('startContainer', refuse('PortTakenError'));
    const failure = await provisioningFailure(agent);

    expect(agent.steps.filter((step) => step === 'startContainer')).toHaveLength(20);
    expect(failure.cause?.cause).toMatchObject({ type: 'PortTakenError' });
    expect(undone(agent).slice(-4)).toEqual(UNDO_ALL);
    expect(agent.port).toBe(0);
  });
});

test('the next worker resumes a provisioning whose worker has ended', async () => {
  await using lab = await WorkflowLab.open({ resumable: true });
  let shutDown = false;
  const agent = lab.agent().on('awaitReady', async (attempt) => {
    if (attempt === 1) await untilCancelled(attempt);
    expect(shutDown).toBe(true);
  });
  const provisioning = await lab.provision(agent);
  await agent.reached('awaitReady');
  await lab.stopWorkers();
  shutDown = true;
  await lab.startWorkers();
  await provisioning.result();

  expect(agent.steps).toContain('awaitReady#2');
  for (const step of ['createContainer', 'startContainer', 'recordRunning']) {
    expect(agent.steps.filter((taken) => taken === step)).toHaveLength(1);
  }
  expect(undone(agent)).toEqual([]);
});

describe('timeouts of less than a second', () => {
  let hasty: WorkflowLab;
  beforeAll(async () => {
    hasty = await WorkflowLab.open({ shortTimeouts: true });
  });
  afterAll(() => hasty?.close());

  test.each(CONTAINER_STEPS)(
    '%s times out if it hangs, and everything is rolled back',
    async (step) => {
      const agent = hasty.agent().on(step, hang);
      const failure = await provisioningFailure(agent, hasty);

      expect(failure.cause?.cause).toBeInstanceOf(TimeoutFailure);
      expect(agent.steps).toContain(`${step}#2`);
      expect(undone(agent)).toEqual(UNDO_ALL);
      expect(failure.details).toEqual([{ leftOver: [] }]);
    },
  );

  test.each(['removeContainer', 'removeNetwork', 'undoVolume'] as const)(
    'a rollback step %s that hangs is given up and named in the error',
    async (undoing) => {
      const agent = hasty.agent().on('startContainer', refuse()).on(undoing, hang);
      const failure = await provisioningFailure(agent, hasty);
      expect(undone(agent)).toEqual(UNDO_ALL);
      expect(failure.details).toEqual([{ leftOver: [undoing] }]);
    },
  );

  test.each(['reservePort', 'recordRunning'] as const)(
    '%s is retried if it hangs',
    async (step) => {
      const agent = hasty
        .agent()
        .on(step, (attempt) => (attempt === 1 ? hang(attempt) : undefined));
      await (await hasty.provision(agent)).result();
      expect(agent.steps).toContain(`${step}#2`);
      expect(undone(agent)).toEqual([]);
    },
  );
});
