import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createCloneActivities } from '../../activities/clones.js';
import type { Supervised } from '../../src/agents/operations/supervisors.js';
import { ChainAwayError } from '../../src/money/chain/chain-node.js';
import type { PaymentState } from '../../src/agents/clones/clone-payments.js';
import { UnavailableError } from '../../src/lib/errors.js';
import { cloneAgentId } from '../../workflows/ids.js';
import { cloneRun } from './support/clone-run.js';
import { signalLate, STAYS_ENDED } from './support/late-signal.js';
import { bundleWorkflows, WorkflowLab } from './support/workflow-lab.js';

let lab: WorkflowLab;
let bundle: Awaited<ReturnType<typeof bundleWorkflows>>;
beforeAll(async () => {
  lab = await WorkflowLab.open();
  bundle = await bundleWorkflows();
});
afterAll(() => lab?.close());

const agent: Supervised = {
  agentId: 'a',
  userId: 'u',
  host: 'local',
  name: 'clone',
  desired: 'running',
  provisioned: false,
};

/** Creates activities whose payment checks return these states in order; the last state repeats. */
function scene(checks: readonly (PaymentState | Error)[]) {
  const seen = { checks: 0, provisioned: [] as string[], unanswered: 0 };
  const activities = createCloneActivities({
    payments: {
      check() {
        const found = checks[Math.min(seen.checks++, checks.length - 1)] ?? 'waiting';
        return found instanceof Error ? Promise.reject(found) : Promise.resolve(found);
      },
    },
    store: { handOver: () => Promise.resolve({ agent, operationId: 'the operation' }) },
    supervisors: {
      provision(_agent, operationId) {
        if (seen.unanswered-- > 0) return Promise.reject(new UnavailableError('away'));
        seen.provisioned.push(operationId);
        return Promise.resolve({ operationId, run: undefined });
      },
    },
  });
  return { activities, seen };
}

const historyOf = async (workflowId: string) =>
  (await lab.environment.client.workflow.getHandle(workflowId).fetchHistory()).events ?? [];

test('a clone is handed to its supervisor once its payment is final', async () => {
  const { activities, seen } = scene(['waiting', 'waiting', 'paid']);
  const { made } = await cloneRun(lab.environment, bundle, activities);
  expect({ made, ...seen }).toMatchObject({
    made: true,
    provisioned: ['the operation'],
    checks: 3,
  });
});

test('waits as long as the chain takes, without adding events to the history', async () => {
  const away = Array.from({ length: 40 }, () => new ChainAwayError());
  const { activities, seen } = scene([...away, 'waiting', 'paid']);
  const { made, workflowId } = await cloneRun(lab.environment, bundle, activities);
  expect({ made, checks: seen.checks }).toEqual({ made: true, checks: 42 });
  expect((await historyOf(workflowId)).length).toBeLessThan(25);
});

test('a payment reverted by the chain makes no clone', async () => {
  const { activities, seen } = scene(['waiting', 'over']);
  const { made } = await cloneRun(lab.environment, bundle, activities);
  expect({ made, provisioned: seen.provisioned }).toEqual({ made: false, provisioned: [] });
});

test('the handover is retried while the supervisor is unreachable', async () => {
  const { activities, seen } = scene(['paid']);
  seen.unanswered = 5;
  await cloneRun(lab.environment, bundle, activities);
  expect(seen.provisioned).toEqual(['the operation']);
});

test('a clone that is retried gets a new run under the same workflow id', async () => {
  const id = randomUUID();
  const first = await cloneRun(lab.environment, bundle, scene(['over']).activities, id);
  const second = await cloneRun(lab.environment, bundle, scene(['paid']).activities, id);
  expect([first, second]).toEqual([
    { made: false, workflowId: cloneAgentId(id) },
    { made: true, workflowId: cloneAgentId(id) },
  ]);
});

test('neither a late signal nor a late start restarts a clone that was handed over', async () => {
  const id = randomUUID();
  // After the handover, the clone no longer waits for its payment.
  const { activities, seen } = scene(['paid', 'over']);
  const first = await cloneRun(lab.environment, bundle, activities, id);
  expect(await signalLate(lab.environment, first.workflowId)).toEqual(STAYS_ENDED);
  const late = await cloneRun(lab.environment, bundle, activities, id);
  expect([first.made, late.made, seen.provisioned]).toEqual([true, false, ['the operation']]);
  expect(await signalLate(lab.environment, first.workflowId)).toEqual(STAYS_ENDED);
});
