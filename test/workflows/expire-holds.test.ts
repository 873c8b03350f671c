import { ApplicationFailure } from '@temporalio/common';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { MoneyActivities } from '../../activities/money.js';
import { moneyPass } from './support/money-pass.js';
import { WorkflowLab, bundleWorkflows } from './support/workflow-lab.js';

let lab: WorkflowLab;
let bundle: Awaited<ReturnType<typeof bundleWorkflows>>;
beforeAll(async () => {
  lab = await WorkflowLab.open();
  bundle = await bundleWorkflows({ shortTimeouts: true });
});
afterAll(() => lab?.close());

/** Returns an activity that fails once before it returns the answer. */
function afterAMoment<Answer>(answer: Answer): () => Promise<Answer> {
  let failures = 1;
  return () => {
    if (failures-- > 0) throw ApplicationFailure.retryable('away', 'ConnectionRefusedError');
    return Promise.resolve(answer);
  };
}

const found = { accounts: 3, transfers: 2, openHolds: 1, differences: 0, isChainAway: false };
const activities = (): MoneyActivities => ({
  releaseEndedHolds: afterAMoment(2),
  closeAgedSessions: afterAMoment(3),
  checkWholeLedger: afterAMoment(found),
});

test('a pass over holds reports how many it released and closed, even after a brief database outage', async () => {
  const { result } = await moneyPass(lab.environment, bundle, 'expireHolds', activities());
  expect(result).toEqual({ released: 2, aged: 3 });
});

test('a pass over the ledger reports its findings, even after a brief database outage', async () => {
  const { result } = await moneyPass(lab.environment, bundle, 'checkLedger', activities());
  expect(result).toEqual(found);
});
