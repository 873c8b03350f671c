import { randomUUID } from 'node:crypto';
import { ApplicationFailure } from '@temporalio/common';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { AccountDeletionActivities } from '../../activities/account-deletion.js';
import { accountDeletionRuns } from '../../temporal/row-runs.js';
import { deleteAccountId } from '../../workflows/ids.js';
import { AGENT_OWNER } from '../../workflows/search-attributes.js';
import { deleteAccount, deletionWorker } from './support/account-deletion.js';
import { Gate } from './support/gate.js';
import { untilCancelled } from './support/misbehaviours.js';
import { bundleWorkflows, WorkflowLab } from './support/workflow-lab.js';

const STEPS = ['accountAreas', 'agents', 'heartbeats', 'identities', 'eraseAccount'] as const;
type Step = (typeof STEPS)[number];

let bundle: Awaited<ReturnType<typeof bundleWorkflows>>;
let lab: WorkflowLab;
let userId: string;
beforeAll(async () => {
  bundle = await bundleWorkflows();
});
beforeEach(() => {
  userId = randomUUID();
});

/** Opens a lab for the tests of the group, without its default workers. */
function withLab(): void {
  beforeAll(async () => {
    lab = await WorkflowLab.open();
    await lab.stopWorkers();
  });
  afterAll(() => lab?.close());
}

/** Activities that record their calls, after an action that a test may inject. */
class Steps implements AccountDeletionActivities {
  readonly done: string[] = [];
  before: (step: Step) => Promise<void> | void = () => undefined;

  accountAreas = async () => {
    await this.#do('accountAreas');
    return STEPS.slice(1, -1);
  };
  leaveArea = (area: string, of: string) => this.#do(area as Step, of);
  eraseAccount = (of: string) => this.#do('eraseAccount', of);

  async #do(step: Step, of = userId): Promise<void> {
    expect(of).toBe(userId);
    await this.before(step);
    this.done.push(step);
  }
}

const away = () => {
  throw ApplicationFailure.retryable('1 agents are being removed', 'CleanupPendingError');
};

describe('deletion of an account', () => {
  withLab();

  test('clears each area in turn, then erases the account', async () => {
    const steps = new Steps();
    await deleteAccount(lab.environment, bundle, userId, steps);
    expect(steps.done).toEqual(STEPS);
  });

  test('retries until Docker is back an hour later, and erases nothing before', async () => {
    const steps = new Steps();
    const began = await lab.environment.currentTimeMs();
    let attempts = 0;
    steps.before = async (step) => {
      if (step !== 'agents') return;
      attempts += 1;
      expect(steps.done).toEqual(['accountAreas']);
      if ((await lab.environment.currentTimeMs()) - began < 3_600_000) away();
    };
    await deleteAccount(lab.environment, bundle, userId, steps);
    expect(steps.done).toEqual(STEPS);
    // The activity is retried about once a minute and adds few events.
    expect(attempts).toBeGreaterThan(30);
    expect(attempts).toBeLessThan(100);
    const { historyLength } = await handle().describe();
    expect(historyLength).toBeLessThan(60);
  });

  test('repeated starts make one run, which is found by its owner', async () => {
    const runs = accountDeletionRuns(lab.environment.client);
    await Promise.all(Array.from({ length: 10 }, () => runs.start(userId)));
    const { runId, typedSearchAttributes } = await handle().describe();
    expect(typedSearchAttributes.get(AGENT_OWNER)).toBe(userId);
    const steps = new Steps();
    await deleteAccount(lab.environment, bundle, userId, steps);
    expect((await handle().describe()).runId).toBe(runId);
    expect(steps.done).toEqual(STEPS);
  });

  test('a terminated deletion is started again', async () => {
    const runs = accountDeletionRuns(lab.environment.client);
    await runs.start(userId);
    await handle().terminate();
    const steps = new Steps();
    await deleteAccount(lab.environment, bundle, userId, steps);
    expect(steps.done).toEqual(STEPS);
  });
});

// A separate server: the time-skipping server stops skipping time after a workflow was ended in the
// middle of a step.
describe('deletion of an account whose worker ends', () => {
  withLab();

  test.each(STEPS)('the next worker resumes the deletion in the step %s', async (cut) => {
    const first = new Steps();
    const reached = new Gate();
    first.before = async (step) => {
      if (step !== cut) return;
      reached.open();
      await untilCancelled(1);
    };
    const worker = await deletionWorker(lab.environment, bundle, first);
    await worker.runUntil(async () => {
      await accountDeletionRuns(lab.environment.client).start(userId);
      await reached.opened;
    });
    const second = new Steps();
    const next = await deletionWorker(lab.environment, bundle, second);
    await next.runUntil(() => handle().result());
    expect([...first.done, ...second.done]).toEqual(STEPS);
    expect(second.done[0]).toBe(cut);
  });
});

const handle = () => lab.environment.client.workflow.getHandle(deleteAccountId(userId));
