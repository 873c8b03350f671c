import { defineQuery, defineSignal, defineUpdate } from '@temporalio/workflow';
import type { AgentRef } from '../src/types/agent-ref.js';
import type { Observation } from '../src/agents/watchdog/observation.js';
import type { RequestedKind } from '../src/types/operation-kinds.js';
import type { DeathCause, WatchdogMemory } from '../src/types/watchdog.js';

/** The request of one operation. Its input, if any, stands in the `operations` table. */
export interface OperationRequest {
  readonly operationId: string;
}

/** The operation will begin, unless it is taken back. */
export interface OperationAdmitted {
  readonly operationId: string;
}

export interface SuperviseAgentInput extends AgentRef {
  readonly desired: 'running' | 'stopped';
  /** Whether it has ever run. If not, a start is a provisioning. */
  readonly provisioned: boolean;
  /** The last observation, so that a new run tells only what changed. */
  readonly observed?: Observation['health'];
  /** What the watchdog remembers. Without it a supervisor takes up what the database knows. */
  readonly watchdog?: WatchdogMemory;
  /** What was heard, and not looked into yet. */
  readonly wakeups?: KeptWakeups;
}

/** What a supervisor was told by signals, as it goes from run to run. */
export interface KeptWakeups {
  readonly checkNow?: boolean;
  readonly ended?: ContainerEnd;
  readonly returned?: DockerReturn;
}

/** A container has ended. A hint: what is there now decides. */
export interface ContainerEnd {
  readonly containerId: string;
  readonly cause: DeathCause;
  /** Null when Docker does not say it. */
  readonly exitCode: number | null;
  /** Unix milliseconds, by Docker's clock. */
  readonly at: number;
}

/** Docker, or the whole host, was away. */
export interface DockerReturn {
  /** Unix milliseconds. What ended since then did so because of that, and did not crash. */
  readonly awayFrom: number;
  /** An operation has brought the agent up since it was heard; whether it is still up, a look tells. */
  readonly isMet?: boolean;
}

/** The Update by which an operation is asked for. */
export function operationUpdate(kind: RequestedKind) {
  return defineUpdate<OperationAdmitted, [OperationRequest]>(kind);
}

/**
 * A new agent is to be provisioned. A signal, so that whoever creates an agent waits for no worker; it
 * may come again, and after other requests.
 */
export const provisionRequested = defineSignal<[OperationRequest]>('provisionRequested');

/** Something is not as it should be: read anew what should be, and look at the container now. */
export const checkNow = defineSignal('checkNow');

/** The host's worker has heard from Docker that the container ended. */
export const containerEnded = defineSignal<[ContainerEnd]>('containerEnded');

/** Docker is back, and the container does not run. */
export const dockerReturned = defineSignal<[DockerReturn]>('dockerReturned');

/** Ids of the operations that the supervisor has heard of, and that are not put down as ended. */
export const openOperations = defineQuery<string[]>('openOperations');

/**
 * The type of the failure that names, as its detail, the operation under way which is the same. As a
 * refusal, because these leave no event: an operation may be asked for a thousand times while it runs.
 */
export const OPERATION_UNDER_WAY = 'OperationUnderWay';

/** The type of the failure that refuses an operation while another one runs. */
export const OPERATION_CONFLICT = 'OperationConflict';
