import {
  ApplicationFailure,
  ParentClosePolicy,
  executeChild,
  proxyActivities,
} from '@temporalio/workflow';
import type { ContainerActivities } from '../activities/containers.js';
import type { AgentRef } from '../src/types/agent-ref.js';
import type { OperationKind } from '../src/types/operation-kinds.js';
import type { WatchdogState } from '../src/types/watchdog.js';
import { bringUp } from './bring-up.js';
import { containersTaskQueue, provisionAgentId } from './ids.js';
import { MEMORY_MISSING } from './memory-missing.js';
import { provisionAgent } from './provision-agent.js';
import { replaceContainer, type Replacement } from './replace-container.js';
import { proxyRecords } from './records.js';
import * as retries from './retries.js';
import { attributesOf } from './search-attributes.js';
import type { Watchdog } from './watchdog.js';

export interface OperationScene extends Replacement {
  /** Watchdog state before the operation. */
  readonly before: WatchdogState;
  readonly watchdog: Pick<Watchdog, 'memory' | 'runRepair'>;
}

type Steps = (scene: OperationScene) => Promise<void>;

/** Steps of each kind of operation; all other properties are in `OPERATIONS`. */
export const OPERATION_STEPS: Readonly<Record<OperationKind, Steps>> = {
  provision: start,
  start,
  stop: async ({ agent, provisioned }) => {
    if (provisioned) await docker(agent).stopContainer(agent);
  },
  restart: async ({ agent, provisioned, watchdog }) => {
    if (!provisioned) return provision(agent, watchdog);
    await docker(agent).stopContainer(agent);
    await bringUp(agent);
  },
  repair,
  configure: (scene) => replaceContainer('configure', scene),
  update: (scene) => replaceContainer('update', scene),
  'reset-memory': (scene) => replaceContainer('reset-memory', scene),
  restore: (scene) => replaceContainer('restore', scene),
  'reset-empty': (scene) => replaceContainer('reset-empty', scene),
  delete: async ({ agent }) => {
    const taskQueue = containersTaskQueue(agent.host);
    const removal = proxyActivities<ContainerActivities>({ ...retries.removal, taskQueue });
    await removal.removeContainer(agent);
    await removal.removeNetwork(agent);
    await removal.removeVolume(agent);
  },
};

/** An agent in these states may run, so a start must not count as done already. */
const UNWELL: readonly WatchdogState[] = ['degraded', 'repairing', 'crash_loop'];

async function start({ agent, provisioned, before, watchdog }: OperationScene): Promise<void> {
  if (!provisioned) return provision(agent, watchdog);
  if (UNWELL.includes(before)) await docker(agent).stopContainer(agent);
  await bringUp(agent);
}

async function repair({ agent, provisioned, watchdog }: OperationScene): Promise<void> {
  if (!provisioned) return provision(agent, watchdog);
  const record = proxyRecords();
  const outcome = await watchdog.runRepair(await record.watchdogSettings(), retries.REQUESTED);
  // If the host has repaired the agent itself, the next check shows its state.
  if (outcome.repaired || outcome.overtaken) return;
  const { memoryIsMissing, reason } = outcome;
  throw ApplicationFailure.nonRetryable(
    reason ?? 'The agent does not answer',
    memoryIsMissing ? MEMORY_MISSING : undefined,
  );
}

/** Runs the provisioning as a child workflow, which undoes its steps if it fails. */
async function provision(agent: AgentRef, { memory }: Pick<Watchdog, 'memory'>): Promise<void> {
  await executeChild(provisionAgent, {
    workflowId: provisionAgentId(agent.agentId),
    args: [{ ...agent, version: memory.version }],
    cancellationType: 'WAIT_CANCELLATION_COMPLETED',
    parentClosePolicy: ParentClosePolicy.REQUEST_CANCEL,
    typedSearchAttributes: attributesOf(agent),
    staticSummary: `Provision agent ${agent.agentId}`,
  });
}

function docker(agent: AgentRef) {
  const taskQueue = containersTaskQueue(agent.host);
  return proxyActivities<ContainerActivities>({ ...retries.dockerCall, taskQueue });
}
