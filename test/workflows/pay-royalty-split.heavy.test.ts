import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createSplitActivities } from '../../activities/splits.js';
import { ChainAwayError } from '../../src/money/chain/chain-node.js';
import { SplitWaitsError } from '../../src/money/splits/split-payments.js';
import { signalLate, STAYS_ENDED } from './support/late-signal.js';
import { splitRun, type SplitRunActivities } from './support/split-run.js';
import { WorkflowLab, bundleWorkflows } from './support/workflow-lab.js';

let lab: WorkflowLab;
let bundle: Awaited<ReturnType<typeof bundleWorkflows>>;
beforeAll(async () => {
  lab = await WorkflowLab.open();
  bundle = await bundleWorkflows();
});
afterAll(() => lab?.close());

/** Creates the activities of a split with two payments, which record their calls. */
function split(over: Partial<Parameters<typeof createSplitActivities>[0]> = {}) {
  const asked: string[] = [];
  const note = <T>(what: string, answer: T): Promise<T> => {
    asked.push(what);
    return Promise.resolve(answer);
  };
  const activities: SplitRunActivities = {
    ...createSplitActivities({
      request: () => note('request', ['first', 'second']),
      settle: (_, cause) => note(`settle ${cause}`, undefined),
      finish: () => note('finish', 'completed' as const),
      ...over,
    }),
    awaitPayment: (cause) =>
      note(`await ${cause}`, {
        state: 'confirmed' as const,
        hash: undefined,
        block: undefined,
        failure: undefined,
      }),
  };
  const run = (id?: string) => splitRun(lab.environment, bundle, activities, id);
  return { asked, note, run };
}

test('each payment is recorded when it has ended, and finally the split', async () => {
  const { asked, run } = split();
  expect((await run()).result).toBe('completed');
  expect(asked).toEqual([
    'request',
    'await first',
    'settle first',
    'await second',
    'settle second',
    'finish',
  ]);
});

test('a split without payments ends at once', async () => {
  const { asked, run } = split({ request: () => Promise.resolve([]) });
  expect((await run()).result).toBe('completed');
  expect(asked).toEqual(['finish']);
});

test.each([
  ['another split of the wallet', () => new SplitWaitsError('Another split is paid')],
  ['a chain that is away', () => new ChainAwayError()],
])('waits for %s', async (_, reason) => {
  let attempts = 0;
  const { asked, note, run } = split({
    request() {
      attempts++;
      return attempts < 30 ? Promise.reject(reason()) : note('request', ['first']);
    },
  });
  expect((await run()).result).toBe('completed');
  expect(asked).toEqual(['request', 'await first', 'settle first', 'finish']);
});

test('neither a late signal nor a late start makes a paid split pay again', async () => {
  const id = randomUUID();
  const due = [['first']];
  const { asked, run } = split({ request: () => Promise.resolve(due.shift() ?? []) });
  const { workflowId } = await run(id);
  expect(await signalLate(lab.environment, workflowId)).toEqual(STAYS_ENDED);
  expect((await run(id)).result).toBe('completed');
  expect(asked).toEqual(['await first', 'settle first', 'finish', 'finish']);
  expect(await signalLate(lab.environment, workflowId)).toEqual(STAYS_ENDED);
});
