import { afterAll, beforeAll, expect, test } from 'vitest';
import { signalLate, STAYS_ENDED } from './support/late-signal.js';
import { signerRun } from './support/signer-run.js';
import { WorkflowLab, bundleWorkflows } from './support/workflow-lab.js';

/** Size of a signal: four of them make Temporal suggest continue-as-new, as thousands of events do. */
const A_MEGABYTE = 1_048_576;

let lab: WorkflowLab;
let bundle: Awaited<ReturnType<typeof bundleWorkflows>>;
beforeAll(async () => {
  lab = await WorkflowLab.open();
  bundle = await bundleWorkflows();
});
afterAll(() => lab?.close());

test('a signer woken while it pays does one more round, then ends', async () => {
  let rounds = 0;
  await signerRun(lab.environment, bundle, async (wake) => {
    rounds++;
    if (rounds < 3) await wake();
  });
  expect(rounds).toBe(3);
});

test('a signer with too many wake-ups continues as new and loses none', async () => {
  let rounds = 0;
  const { workflowId } = await signerRun(lab.environment, bundle, async (wake) => {
    if (++rounds === 1) for (let n = 0; n < 5; n++) await wake('x'.repeat(A_MEGABYTE));
  });
  expect(rounds).toBe(2);
  const { events } = await lab.environment.client.workflow.getHandle(workflowId).fetchHistory();
  expect(events?.[0]?.workflowExecutionStartedEventAttributes?.continuedExecutionRunId).not.toBe(
    '',
  );
});

test('a chain node unavailable for days adds no events to the history', async () => {
  let attempts = 0;
  const { workflowId } = await signerRun(lab.environment, bundle, () => {
    attempts++;
    return attempts < 500 ? Promise.reject(new Error('away')) : Promise.resolve();
  });
  const { events } = await lab.environment.client.workflow.getHandle(workflowId).fetchHistory();
  expect(attempts).toBe(500);
  expect(events?.length).toBeLessThan(15);
});

test('neither a late signal nor a late start makes an ended signer pay again', async () => {
  const [due, paid] = [['the payment'], [] as string[]];
  let checks = 0;
  const pay = () => {
    checks++;
    paid.push(...due.splice(0));
    return Promise.resolve();
  };
  const { signerId, workflowId } = await signerRun(lab.environment, bundle, pay);
  expect(await signalLate(lab.environment, workflowId)).toEqual(STAYS_ENDED);
  await signerRun(lab.environment, bundle, pay, signerId);
  expect({ paid, checks }).toEqual({ paid: ['the payment'], checks: 2 });
  expect(await signalLate(lab.environment, workflowId)).toEqual(STAYS_ENDED);
});
