// Records the workflow histories that test/workflows/replay.heavy.test.ts replays, from a Temporal dev server
// with fake agents. Run it for each released change of a workflow:
//
//     npm run record:histories
//
// The files are named by the day. Existing files are never overwritten.
import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { History } from '@temporalio/common/lib/proto-utils.js';
import { TestWorkflowEnvironment } from '@temporalio/testing';
import { ApplicationFailure } from '@temporalio/common';
import { createCloneActivities } from '../activities/clones.js';
import type { EmailActivities } from '../activities/email.js';
import type { PaymentState } from '../src/agents/clones/clone-payments.js';
import type { EmailStatus } from '../src/types/agent-emails.js';
import { RETAINED } from '../src/retention/retained.js';
import { EVENT_TYPES } from '../src/accounts/security-events/event-types.js';
import { play, type Version } from '../test/workflows/recipe/play.js';
import { deleteAccount } from '../test/workflows/support/account-deletion.js';
import { billingPass } from '../test/workflows/support/billing-pass.js';
import { busRun } from '../test/workflows/support/bus-run.js';
import { cloneRun } from '../test/workflows/support/clone-run.js';
import { emailRun } from '../test/workflows/support/email-run.js';
import { HeartbeatLab } from '../test/workflows/support/heartbeat-lab.js';
import { SCENARIOS } from '../test/workflows/support/history-scenarios.js';
import { historyToText } from '../test/workflows/support/kept-history.js';
import { mailRun } from '../test/workflows/support/mail-run.js';
import { moneyPass } from '../test/workflows/support/money-pass.js';
import { processorEventPass } from '../test/workflows/support/processor-event-pass.js';
import { reconcilePass } from '../test/workflows/support/reconcile-pass.js';
import { retentionPass } from '../test/workflows/support/retention-pass.js';
import { securityEventPass } from '../test/workflows/support/security-event-pass.js';
import { signerRun } from '../test/workflows/support/signer-run.js';
import { splitRun } from '../test/workflows/support/split-run.js';
import { SwarmRun } from '../test/workflows/support/swarm-run.js';
import {
  HOST as TASK_HOST,
  taskRun,
  type TaskRunActivities,
} from '../test/workflows/support/task-run.js';
import { HOST, verificationRun } from '../test/workflows/support/verification-run.js';
import { VideoRun } from '../test/workflows/support/video-run.js';
import { usagePass } from '../test/workflows/support/usage-pass.js';
import {
  WorkflowLab,
  bundleWorkflows,
  timeSkipping,
} from '../test/workflows/support/workflow-lab.js';
import { deleteAccountId, repairAgentId, superviseAgentId } from '../workflows/ids.js';
import { AGENT_ID, AGENT_OWNER, AGENT_PHASE } from '../workflows/search-attributes.js';
import { CleanupPendingError } from '../src/accounts/accounts/account-deletions.js';
import { findTemporalCli } from '../dev/temporal/temporal-binary.js';
import { step } from '../dev/report.js';
import { projectRoot } from '../dev/root.js';
import { readSettings } from '../dev/settings.js';

const folder = path.join(projectRoot, 'test', 'workflows', 'histories');
// With the hour, since there may be more than one version in a day.
const day = new Date().toISOString().slice(0, 13);

const lab = await WorkflowLab.open({ environment: devServer });
try {
  await mkdir(folder, { recursive: true });
  for (const [name, play] of Object.entries(SCENARIOS)) await step(name, () => record(name, play));
  await step('heartbeat', recordHeartbeat);
  await step('reconciliation', recordReconciliation);
  await step('usage', recordUsage);
  await step('money', recordMoney);
  await step('retention', recordRetention);
  await step('security events', recordSecurityEvent);
  await step('payment processor', recordProcessorEvent);
  await step('billing', recordBilling);
  await step('mail', recordMail);
  await step('messages of the bus', recordBus);
  await step('payments', recordPayments);
  await step('clones', recordClone);
  await step('deletion of an account', recordAccountDeletion);
  await step('split', recordSplit);
  await step('verification', recordVerification);
  await step('swarm', recordSwarm);
  await step('video', recordVideo);
  await step('scheduled task', recordScheduledTask);
  await step('e-mail', recordEmail);
  await step('recipe', recordRecipe);
} finally {
  await lab.close();
}

async function record(scenario: string, play: (typeof SCENARIOS)[string]): Promise<void> {
  await play(lab, lab.agent(scenario));
  const supervisor = await historyOf(superviseAgentId(scenario));
  await keep('supervise-agent', scenario, supervisor);
  const children = (supervisor.events ?? []).flatMap(
    (event) => event.childWorkflowExecutionStartedEventAttributes?.workflowExecution ?? [],
  );
  for (const { workflowId, runId } of children) {
    const isRepair = workflowId === repairAgentId(scenario);
    const name = isRepair ? 'repair-agent' : 'provision-agent';
    const part = isRepair && runId !== children[0]?.runId ? `${scenario}-given-up` : scenario;
    await keep(name, part, await historyOf(workflowId ?? '', runId ?? undefined));
  }
}

/** Records a heartbeat with two pages and an agent that does not answer. */
async function recordHeartbeat(): Promise<void> {
  const heartbeats = await HeartbeatLab.open(lab.environment, await bundleWorkflows());
  try {
    heartbeats.agents = heartbeats.newAgents(9);
    heartbeats.pageSize = 6;
    heartbeats.failing.add('lab-0001');
    const { workflowId, firstRunId } = await heartbeats.send('send-heartbeats-recorded');
    await keep('send-heartbeats', 'first-page', await historyOf(workflowId, firstRunId));
    await keep('send-heartbeats', 'last-page', await historyOf(workflowId));
  } finally {
    await heartbeats.close();
  }
}

async function recordReconciliation(): Promise<void> {
  const { workflowId } = await reconcilePass(lab.environment, await bundleWorkflows(), {
    wakeDrifted: () => Promise.resolve(1),
    removeOrphans: () => Promise.resolve(['left-over']),
  });
  await keep('reconcile-host', 'pass', await historyOf(workflowId));
}

async function recordUsage(): Promise<void> {
  const { workflowId } = await usagePass(lab.environment, await bundleWorkflows(), {
    rollUpUsage: () => Promise.resolve(2),
  });
  await keep('roll-up-usage', 'pass', await historyOf(workflowId));
}

async function recordMoney(): Promise<void> {
  for (const workflow of ['expireHolds', 'checkLedger'] as const) {
    const { workflowId } = await moneyPass(lab.environment, await bundleWorkflows(), workflow, {
      releaseEndedHolds: () => Promise.resolve(2),
      closeAgedSessions: () => Promise.resolve(1),
      checkWholeLedger: () =>
        Promise.resolve({
          accounts: 1,
          transfers: 0,
          openHolds: 0,
          differences: 0,
          isChainAway: false,
        }),
    });
    await keep(
      workflow === 'expireHolds' ? 'expire-holds' : 'check-ledger',
      'pass',
      await historyOf(workflowId),
    );
  }
}

async function recordRetention(): Promise<void> {
  const { workflowId } = await retentionPass(lab.environment, await bundleWorkflows(), {
    retainedKinds: () => Promise.resolve(RETAINED),
    removeOldRows: () => Promise.resolve(3),
  });
  await keep('enforce-retention', 'pass', await historyOf(workflowId));
}

async function recordSecurityEvent(): Promise<void> {
  const { workflowId } = await securityEventPass(lab.environment, await bundleWorkflows(), {
    applySecurityEvent: () =>
      Promise.resolve([{ type: EVENT_TYPES['sessions-revoked'], effect: 'signed-out' }]),
  });
  await keep('apply-security-event', 'pass', await historyOf(workflowId));
}

async function recordProcessorEvent(): Promise<void> {
  const { workflowId } = await processorEventPass(lab.environment, await bundleWorkflows(), {
    applyProcessorEvent: () => Promise.resolve('reading'),
    readProcessorEvent: () => Promise.resolve('read'),
  });
  await keep('apply-processor-event', 'read', await historyOf(workflowId));
}

async function recordBilling(): Promise<void> {
  const { workflowId } = await billingPass(lab.environment, await bundleWorkflows(), {
    reconcileBilling: () => Promise.resolve({ subscriptions: 1, checkouts: 1, failures: 0 }),
  });
  await keep('reconcile-billing', 'pass', await historyOf(workflowId));
}

async function recordMail(): Promise<void> {
  const { workflowId } = await mailRun(lab.environment, await bundleWorkflows(), {
    deliverMail: () => Promise.resolve('sent'),
  });
  await keep('send-mail', 'sent', await historyOf(workflowId));
}

/** Records a message that is delivered, and one whose attempts have ended. */
async function recordBus(): Promise<void> {
  const records = {
    routeBusMessage: () => Promise.resolve(),
    giveUpBusMessage: () => Promise.resolve('dead' as const),
  };
  const delivered = await busRun(lab.environment, await bundleWorkflows(), records, {
    postBusMessage: () => Promise.resolve('delivered'),
  });
  await keep('deliver-bus-message', 'delivered', await historyOf(delivered.workflowId));
  const dead = await busRun(lab.environment, await bundleWorkflows(), records, {
    postBusMessage: () => Promise.reject(ApplicationFailure.nonRetryable('The receiver is gone')),
  });
  await keep('deliver-bus-message', 'dead', await historyOf(dead.workflowId));
}

/** Records payments, one of which is requested during the run. */
async function recordPayments(): Promise<void> {
  let rounds = 0;
  const pay = async (wake: () => Promise<void>) => {
    rounds += 1;
    if (rounds === 1) await wake();
  };
  const { workflowId } = await signerRun(lab.environment, await bundleWorkflows(), pay);
  await keep('chain-signer', 'woken', await historyOf(workflowId));
}

/** Records a clone whose payment is polled twice. */
async function recordClone(): Promise<void> {
  const states: PaymentState[] = ['waiting', 'paid'];
  const activities = createCloneActivities({
    payments: { check: () => Promise.resolve(states.shift() ?? 'paid') },
    store: { handOver: () => Promise.resolve(undefined) },
    supervisors: {
      provision: (_, operationId) => Promise.resolve({ operationId, run: undefined }),
    },
  });
  const { workflowId } = await cloneRun(lab.environment, await bundleWorkflows(), activities);
  await keep('clone-agent', 'paid', await historyOf(workflowId));
}

/** Records a verification, and one whose host is unreachable. */
async function recordVerification(): Promise<void> {
  const runOf = async (isThere: boolean) => {
    let isOpen = true;
    const end = () => Promise.resolve(void (isOpen = false));
    return verificationRun(lab.environment, await bundleWorkflows(), {
      records: {
        openVerification: (agentId) => {
          const agent = { agentId, userId: 'user', host: HOST };
          return Promise.resolve(isOpen ? { id: 'recorded', agent } : undefined);
        },
        finishVerification: end,
        failVerification: end,
      },
      host: {
        measureAgent: () =>
          isThere
            ? Promise.resolve(true)
            : Promise.reject(ApplicationFailure.nonRetryable('The host is away')),
      },
      payments: { signAttestation: () => Promise.resolve(true) },
    });
  };
  const [verified, failed] = [await runOf(true), await runOf(false)];
  await keep('verify-agent', 'verified', await historyOf(verified.workflowId));
  await keep('verify-agent', 'host-away', await historyOf(failed.workflowId));
}

/** Records a parallel swarm with an unreachable host, and a sequential swarm that is cancelled. */
async function recordSwarm(): Promise<void> {
  const parallel = new SwarmRun({ strategy: 'parallel', members: 3 });
  parallel.ask = (turn) =>
    turn.agent.agentId === 'agent-2'
      ? Promise.reject(ApplicationFailure.nonRetryable('The host is away'))
      : Promise.resolve('answered');
  await parallel.run(lab.environment, await bundleWorkflows());
  await keep('run-swarm', 'merged', await historyOf(parallel.workflowId));
  const sequential = new SwarmRun({ strategy: 'sequential', members: 3 });
  sequential.ask = async () => {
    await sequential.cancel(lab.environment);
    return 'answered';
  };
  await sequential.run(lab.environment, await bundleWorkflows());
  await keep('run-swarm', 'cancelled', await historyOf(sequential.workflowId));
}

/** Records a video that is reported before the answer to its request, and one that takes too long. */
async function recordVideo(): Promise<void> {
  const reported = new VideoRun();
  reported.request = async () => {
    await reported.report(lab.environment);
    return 'prediction';
  };
  await reported.run(lab.environment, await bundleWorkflows());
  await keep('generate-video', 'reported', await historyOf(reported.workflowId));
  const late = new VideoRun();
  late.leftMs = 1_000;
  late.check = () => Promise.resolve('running');
  await late.run(lab.environment, await bundleWorkflows());
  await keep('generate-video', 'late', await historyOf(late.workflowId));
}

/** Records a run of a task, a run whose host is unreachable, and a run of a task that has changed. */
async function recordScheduledTask(): Promise<void> {
  const runOf = async (isBegun: boolean, isThere: boolean) => {
    const agent = { agentId: 'recorded', userId: 'user', host: TASK_HOST };
    const activities: TaskRunActivities = {
      records: {
        beginTaskRun: ({ id }) => Promise.resolve(isBegun ? { id, agent } : undefined),
        endLostTaskRun: () => Promise.resolve('skipped'),
      },
      host: {
        askForTask: () =>
          isThere
            ? Promise.resolve('answered')
            : Promise.reject(ApplicationFailure.nonRetryable('The host is away')),
      },
    };
    const input = { taskId: 'recorded', setAt: '2026-01-01T00:00:00.000Z' };
    const { workflowId } = await taskRun(
      lab.environment,
      await bundleWorkflows(),
      activities,
      input,
    );
    return historyOf(workflowId);
  };
  await keep('run-scheduled-task', 'answered', await runOf(true, true));
  await keep('run-scheduled-task', 'host-away', await runOf(true, false));
  await keep('run-scheduled-task', 'changed', await runOf(false, true));
}

/** Records a mail whose answer is retried, and mails that end before. */
async function recordEmail(): Promise<void> {
  const agent = { agentId: 'recorded', userId: 'user', host: TASK_HOST };
  const refuse = () => Promise.reject(ApplicationFailure.nonRetryable('The other side is away'));
  const runOf = async (
    status: EmailStatus,
    sending: EmailActivities['sendEmailAnswer'],
    isAway = false,
  ) => {
    const { workflowId } = await emailRun(lab.environment, await bundleWorkflows(), {
      records: {
        giveUpEmail: () => Promise.resolve('failed'),
        endLostEmailTurn: () => Promise.resolve('skipped'),
      },
      calls: {
        readEmail: (id) => Promise.resolve({ status, mail: { id, agent } }),
        sendEmailAnswer: sending,
      },
      host: {
        askForEmail: () => (isAway ? refuse() : Promise.resolve('answered')),
      },
    });
    return historyOf(workflowId);
  };
  let attempts = 0;
  const retried = () =>
    attempts++ < 2
      ? Promise.reject(ApplicationFailure.retryable('The provider is away'))
      : Promise.resolve('answered' as const);
  await keep('answer-email', 'retried', await runOf('asking', retried));
  await keep('answer-email', 'refused', await runOf('refused', retried));
  await keep('answer-email', 'given-up', await runOf('answering', refuse));
  const skipped = () => Promise.resolve('skipped' as const);
  await keep('answer-email', 'host-away', await runOf('asking', skipped, true));
}

/** Records a deletion with two areas, the first of which must be retried. */
async function recordAccountDeletion(): Promise<void> {
  // The lab's own workers would poll for tasks too.
  await lab.stopWorkers();
  let attempts = 0;
  await deleteAccount(lab.environment, await bundleWorkflows(), 'recorded', {
    accountAreas: () => Promise.resolve(['agents', 'heartbeats']),
    leaveArea() {
      attempts += 1;
      if (attempts === 1) throw new CleanupPendingError('1 agents are being removed');
      return Promise.resolve();
    },
    eraseAccount: () => Promise.resolve(),
  });
  await keep('delete-account', 'whole', await historyOf(deleteAccountId('recorded')));
}

/** Records a split of two payments, the second of which fails. */
async function recordSplit(): Promise<void> {
  const ended = { hash: undefined, block: undefined, failure: undefined } as const;
  const { workflowId } = await splitRun(lab.environment, await bundleWorkflows(), {
    requestSplitPayments: () => Promise.resolve(['split:1:1:0', 'split:1:1:1']),
    awaitPayment: (cause) =>
      Promise.resolve(
        cause.endsWith('0')
          ? { ...ended, state: 'confirmed' }
          : { ...ended, state: 'failed', failure: 'reverted' },
      ),
    settleSplitPayment: () => Promise.resolve(),
    finishSplit: () => Promise.resolve('partial'),
  });
  await keep('pay-royalty-split', 'partial', await historyOf(workflowId));
}

/** Records both versions of the workflow in the recipe for a change. */
async function recordRecipe(): Promise<void> {
  const recipe = path.join(projectRoot, 'test', 'workflows', 'recipe', 'histories');
  const skipping = await timeSkipping();
  try {
    await mkdir(recipe, { recursive: true });
    for (const version of ['before', 'after'] satisfies Version[]) {
      const text = historyToText(await play(skipping, version));
      await writeFile(path.join(recipe, `${version}.json`), text);
    }
  } finally {
    await skipping.teardown();
  }
}

function historyOf(workflowId: string, runId?: string): Promise<History> {
  return lab.environment.client.workflow.getHandle(workflowId, runId).fetchHistory();
}

async function keep(workflow: string, scenario: string, history: History): Promise<void> {
  const file = path.join(folder, `${day}-${workflow}-${scenario}.json`);
  await writeFile(file, historyToText(history), { flag: 'wx' });
}

async function devServer(): Promise<TestWorkflowEnvironment> {
  const cli = await findTemporalCli(readSettings(process.env));
  return TestWorkflowEnvironment.createLocal({
    server: {
      executable: { type: 'existing-path', path: cli },
      ip: '127.0.0.1',
      searchAttributes: [AGENT_ID, AGENT_OWNER, AGENT_PHASE],
    },
  });
}
