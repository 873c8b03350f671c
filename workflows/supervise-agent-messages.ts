import { defineQuery, defineSignal, defineUpdate } from '@temporalio/workflow';
import type { AgentRef } from '../src/types/agent-ref.js';
import type { Observation } from '../src/agents/watchdog/observation.js';
import type { RequestedKind } from '../src/types/operation-kinds.js';
import type { DeathCause, WatchdogMemory } from '../src/types/watchdog.js';

/** A request for one operation; its input, if any, is in the `operations` table. */
export interface OperationRequest {
  readonly operationId: string;
}

/** Confirmation that the operation will run, unless it is withdrawn. */
export interface OperationAdmitted {
  readonly operationId: string;
}

export interface SuperviseAgentInput extends AgentRef {
  readonly desired: 'running' | 'stopped';
  /** If the agent has never run, a start is a provisioning. */
  readonly provisioned: boolean;
  /** The last observed health, so that a new run reports only changes. */
  readonly observed?: Observation['health'];
  /** If missing, the supervisor loads it from the database. */
  readonly watchdog?: WatchdogMemory;
  readonly wakeups?: KeptWakeups;
}

/** Signals that a supervisor passes from run to run. */
export interface KeptWakeups {
  readonly checkNow?: boolean;
  readonly ended?: ContainerEnd;
  readonly returned?: DockerReturn;
}

/** Only a hint: the container's present state decides. */
export interface ContainerEnd {
  readonly containerId: string;
  readonly cause: DeathCause;
  /** Null if Docker does not report it. */
  readonly exitCode: number | null;
  /** Unix milliseconds, by Docker's clock. */
  readonly at: number;
}

/** The return of Docker, or of the whole host, after an outage. */
export interface DockerReturn {
  /** Start of the outage in Unix milliseconds. Containers that ended since then did not crash. */
  readonly awayFrom: number;
  /** An operation has started the agent since the signal; a check shows whether it is still up. */
  readonly isMet?: boolean;
}

export function operationUpdate(kind: RequestedKind) {
  return defineUpdate<OperationAdmitted, [OperationRequest]>(kind);
}

/** Requests a provisioning, without waiting for a worker; may arrive twice, and after other requests. */
export const provisionRequested = defineSignal<[OperationRequest]>('provisionRequested');

/** Reports a deviation: reload the desired state and check the container now. */
export const checkNow = defineSignal('checkNow');

/** Reports that the container ended, according to Docker's events on the host. */
export const containerEnded = defineSignal<[ContainerEnd]>('containerEnded');

/** Reports that Docker is back and the container is not running. */
export const dockerReturned = defineSignal<[DockerReturn]>('dockerReturned');

/** Ids of the operations that the supervisor has received and not recorded as ended. */
export const openOperations = defineQuery<string[]>('openOperations');

/**
 * Failure type; its detail is the id of the same operation in flight. The Update is rejected, because a
 * rejection adds no event to the history: clients may repeat a request a thousand times.
 */
export const OPERATION_UNDER_WAY = 'OperationUnderWay';

/** Rejects an operation while a different one runs. */
export const OPERATION_CONFLICT = 'OperationConflict';
