import { ApplicationFailure } from '@temporalio/common';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { bundleWorkflows, WorkflowLab } from './support/workflow-lab.js';
import { SwarmRun } from './support/swarm-run.js';

let lab: WorkflowLab;
let bundle: Awaited<ReturnType<typeof bundleWorkflows>>;
beforeAll(async () => {
  lab = await WorkflowLab.open();
  bundle = await bundleWorkflows();
});
afterAll(() => lab?.close());

const run = (swarm: SwarmRun) => swarm.run(lab.environment, bundle);

test('a parallel swarm sends its question to eight members at a time, and then to its coordinator', async () => {
  const swarm = new SwarmRun({ strategy: 'parallel', members: 20 });
  let waiting = 0;
  let free: () => void = () => undefined;
  const full = new Promise<void>((resolve) => (free = resolve));
  swarm.ask = async () => {
    if (++waiting === 8) free();
    await full;
    return 'answered';
  };
  expect(await run(swarm)).toBe('completed');
  expect(swarm.mostAtOnce).toBe(8);
  const members = Array.from({ length: 20 }, (_, position) => `1/${position}`);
  expect(swarm.made.slice(0, 20).sort()).toEqual(members.sort());
  expect(swarm.made.slice(20)).toEqual(['1/merge', 'settle 1']);
});

test('a parallel swarm without an answer sends no question to its coordinator', async () => {
  const swarm = new SwarmRun({ strategy: 'parallel', members: 2 });
  swarm.ask = () => Promise.resolve('skipped');
  await run(swarm);
  expect(swarm.made.toSorted()).toEqual(['1/0', '1/1', 'settle 1']);
});

test('a sequential swarm sends its question to one member after the other, and stops after a failure', async () => {
  const swarm = new SwarmRun({ strategy: 'sequential', members: 4 });
  swarm.ask = ({ id }) => Promise.resolve(id === '1/2' ? 'failed' : 'answered');
  await run(swarm);
  expect([swarm.mostAtOnce, swarm.made]).toEqual([1, ['1/0', '1/1', '1/2', 'settle 1']]);
});

test('a swarm shows how many of its members are done', async () => {
  const swarm = new SwarmRun({ strategy: 'sequential', members: 3 });
  const shown: (string | undefined)[] = [];
  swarm.ask = async () => {
    const handle = lab.environment.client.workflow.getHandle(swarm.workflowId);
    const { currentDetails } = await handle.query<{ readonly currentDetails?: string }>(
      '__temporal_workflow_metadata',
    );
    shown.push(currentDetails);
    return 'answered';
  };
  await run(swarm);
  expect(shown).toEqual(['0 of 3', '1 of 3', '2 of 3']);
});

test.each(['parallel', 'sequential'] as const)(
  'a cancelled %s swarm sends no question after the turns in progress',
  async (strategy) => {
    const swarm = new SwarmRun({ strategy, members: 20 });
    let isCancelled = false;
    swarm.ask = async () => {
      if (!isCancelled) {
        isCancelled = true;
        await swarm.cancel(lab.environment);
      }
      return 'answered';
    };
    await run(swarm);
    const asked = swarm.made.filter((each) => !each.startsWith('settle'));
    expect(asked.length).toBeLessThanOrEqual(strategy === 'parallel' ? 16 : 1);
    expect(asked).not.toContain('1/merge');
    expect(swarm.made.at(-1)).toBe('settle 1');
  },
);

test('a cancellation of an earlier round does not end the next', async () => {
  const swarm = new SwarmRun({ strategy: 'sequential', members: 2, rounds: 2 });
  let asked = 0;
  swarm.ask = async () => {
    asked += 1;
    // The second is late: its round has ended.
    if (asked <= 2) await swarm.cancel(lab.environment, 1);
    return 'answered';
  };
  await run(swarm);
  expect(swarm.made).toEqual(['1/0', 'settle 1', '2/0', '2/1', 'settle 2']);
});

test('a turn that fails ten times is repeated, and its members get the question in order', async () => {
  const swarm = new SwarmRun({ strategy: 'sequential', members: 2 });
  let attempts = 0;
  swarm.ask = () =>
    ++attempts <= 10 ? Promise.reject(new Error('no database')) : Promise.resolve('answered');
  await run(swarm);
  expect([...new Set(swarm.made)]).toEqual(['1/0', '1/1', 'settle 1']);
});

test('a turn that the host refuses ends as lost, and the others continue', async () => {
  const swarm = new SwarmRun({ strategy: 'parallel', members: 2 });
  swarm.ask = ({ id }) =>
    id === '1/0'
      ? Promise.reject(ApplicationFailure.nonRetryable('refused'))
      : Promise.resolve('answered');
  await run(swarm);
  expect(swarm.made).toContain('lost 1/0');
  expect(swarm.made.slice(-2)).toEqual(['1/merge', 'settle 1']);
});

test.each([
  ['parallel', ['1/0', 'lost 1/1', '1/merge', 'settle 1']],
  ['sequential', ['1/0', 'lost 1/1', 'settle 1']],
] as const)(
  'a member of a %s swarm whose host is unreachable gets no question after ten minutes',
  async (strategy, made) => {
    const swarm = new SwarmRun({ strategy, members: 2, away: 1 });
    const running = run(swarm);
    await expect.poll(() => swarm.made).toContain('1/0');
    // Time that is skipped before the turn is scheduled would not count.
    await expect.poll(() => swarm.isWaitingForHost(lab.environment)).toBe(true);
    await lab.environment.sleep('9 minutes');
    expect(swarm.made).not.toContain('lost 1/1');
    // A second more than the limit, so that no record of the end takes skipped minutes.
    await lab.environment.sleep('61 seconds');
    expect(await running).toBe('completed');
    // A record may be written again after skipped time.
    expect([...new Set(swarm.made)]).toEqual(made);
  },
);
