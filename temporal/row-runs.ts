import {
  WorkflowExecutionAlreadyStartedError,
  type Client,
  type WorkflowStartOptions,
} from '@temporalio/client';
import type { SearchAttributePair } from '@temporalio/common';
import {
  answerEmailId,
  applyProcessorEventId,
  applySecurityEventId,
  cloneAgentId,
  deliverBusMessageId,
  deleteAccountId,
  generateVideoId,
  payRoyaltySplitId,
  runSwarmId,
  PLATFORM_TASK_QUEUE,
  sendMailId,
  verifyAgentId,
} from '../workflows/ids.js';
import type * as workflows from '../workflows/index.js';
import { AGENT_ID, AGENT_OWNER } from '../workflows/search-attributes.js';
import { videoChanged } from '../workflows/generate-video-messages.js';
import { cancelSwarm } from '../workflows/run-swarm-messages.js';
import { temporalCall } from './temporal-call.js';

const CALL_TIMEOUT_MS = 10_000;

/** Start options of a run. */
export interface RowStart {
  /** The row's owner: runs for one owner do not delay those of other owners. */
  readonly owner?: string | undefined;
  /** The agent that the row concerns, for the Temporal UI. */
  readonly agentId?: string | undefined;
}

/** The runs for one kind of row: at most one at a time for each row. */
export interface RowRuns {
  /**
   * Starts the run of a row. Changes nothing while a run is in progress.
   *
   * @returns false if the row may have only one run ever, and that run has ended.
   * @throws UnavailableError when Temporal cannot be reached; the run may have been started.
   */
  start(id: string, how?: RowStart): Promise<boolean>;
}

/** Workflows whose only argument is the id of a row. */
type OfRow = {
  [Name in keyof typeof workflows]: Parameters<(typeof workflows)[Name]> extends [string]
    ? Name
    : never;
}[keyof typeof workflows];

interface Kind {
  readonly workflow: OfRow;
  readonly workflowId: (id: string) => string;
  /**
   * True if a row has only one run ever; otherwise a new run may follow an ended one, each time the row
   * is handed over.
   */
  readonly isOnce?: true;
  readonly more?: (
    id: string,
    how: RowStart,
  ) => Pick<WorkflowStartOptions, 'staticSummary' | 'typedSearchAttributes'>;
}

const optionsOf = (
  { isOnce, more, workflowId }: Omit<Kind, 'workflow'>,
  id: string,
  how: RowStart,
) => ({
  ...more?.(id, how),
  ...(how.owner !== undefined && { priority: { fairnessKey: how.owner } }),
  workflowId: workflowId(id),
  taskQueue: PLATFORM_TASK_QUEUE,
  args: [id] as [string],
  workflowIdConflictPolicy: 'USE_EXISTING' as const,
  ...(isOnce && { workflowIdReusePolicy: 'REJECT_DUPLICATE' as const }),
});

/** Returns the search attributes of a run for an owner, or for one agent. */
const attributesFor = ({ agentId, owner }: RowStart): SearchAttributePair[] => [
  ...(agentId === undefined ? [] : [{ key: AGENT_ID, value: agentId }]),
  ...(owner === undefined ? [] : [{ key: AGENT_OWNER, value: owner }]),
];

const runsOf =
  ({ workflow, ...kind }: Kind) =>
  (client: Client): RowRuns => ({
    start: (id, how = {}) =>
      temporalCall(client, CALL_TIMEOUT_MS, async () => {
        try {
          await client.workflow.start(workflow, optionsOf(kind, id, how));
          return true;
        } catch (error) {
          if (error instanceof WorkflowExecutionAlreadyStartedError) return false;
          throw error;
        }
      }),
  });

/** Each mail is sent by exactly one run. */
export const mailRuns = runsOf({ workflow: 'sendMail', workflowId: sendMailId, isOnce: true });

export const securityEventRuns = runsOf({
  workflow: 'applySecurityEvent',
  workflowId: applySecurityEventId,
});

export const processorEventRuns = runsOf({
  workflow: 'applyProcessorEvent',
  workflowId: applyProcessorEventId,
});

export const accountDeletionRuns = runsOf({
  workflow: 'deleteAccount',
  workflowId: deleteAccountId,
  more: (userId) => ({
    staticSummary: 'Deletion of an account',
    typedSearchAttributes: attributesFor({ owner: userId }),
  }),
});

export const cloneRuns = runsOf({
  workflow: 'cloneAgent',
  workflowId: cloneAgentId,
  more: (id) => ({
    staticSummary: `Clone ${id}`,
    typedSearchAttributes: attributesFor({ agentId: id }),
  }),
});

export const royaltySplitRuns = runsOf({
  workflow: 'payRoyaltySplit',
  workflowId: payRoyaltySplitId,
});

export const busMessageRuns = runsOf({
  workflow: 'deliverBusMessage',
  workflowId: deliverBusMessageId,
});

export const emailRuns = runsOf({
  workflow: 'answerEmail',
  workflowId: answerEmailId,
  more: (id, how) => ({
    staticSummary: `E-mail ${id}`,
    typedSearchAttributes: attributesFor(how),
  }),
});

/** By the agent's id: an agent has one measurement at a time. */
export const verificationRuns = runsOf({
  workflow: 'verifyAgent',
  workflowId: verifyAgentId,
  more: (agentId, { owner }) => ({
    staticSummary: `Verification of agent ${agentId}`,
    typedSearchAttributes: attributesFor({ agentId, owner }),
  }),
});

const SWARMS = {
  workflow: 'runSwarm',
  workflowId: runSwarmId,
  more: (id, how) => ({
    staticSummary: `Swarm ${id}`,
    typedSearchAttributes: attributesFor(how),
  }),
} as const satisfies Kind;

/** The runs of swarms, which learn that a round is cancelled. */
export interface SwarmRuns extends RowRuns {
  /** @throws UnavailableError when Temporal cannot be reached; the run may still have received the signal. */
  cancel(id: string, round: number, how?: RowStart): Promise<void>;
}

export const swarmRuns = (client: Client): SwarmRuns => ({
  ...runsOf(SWARMS)(client),
  cancel: (id, round, how = {}) =>
    temporalCall(client, CALL_TIMEOUT_MS, async () => {
      await client.workflow.signalWithStart(SWARMS.workflow, {
        ...optionsOf(SWARMS, id, how),
        signal: cancelSwarm,
        signalArgs: [round],
      });
    }),
});

const VIDEOS = {
  workflow: 'generateVideo',
  workflowId: generateVideoId,
  more: (id, how) => ({
    staticSummary: `Video ${id}`,
    typedSearchAttributes: attributesFor(how),
  }),
} as const satisfies Kind;

/** The runs of videos, which learn that the provider has reported a change. */
export interface VideoRuns extends RowRuns {
  /** @throws UnavailableError when Temporal cannot be reached; the run may still have received the signal. */
  change(id: string, how?: RowStart): Promise<void>;
}

export const videoRuns = (client: Client): VideoRuns => ({
  ...runsOf(VIDEOS)(client),
  change: (id, how = {}) =>
    temporalCall(client, CALL_TIMEOUT_MS, async () => {
      await client.workflow.signalWithStart(VIDEOS.workflow, {
        ...optionsOf(VIDEOS, id, how),
        signal: videoChanged,
      });
    }),
});
