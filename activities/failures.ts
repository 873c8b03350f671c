import { ApplicationFailure, TemporalFailure } from '@temporalio/common';
import {
  ContainerError,
  DiskLowError,
  ForeignContainerError,
  ImageUnavailableError,
  MemoryMissingError,
  PortTakenError,
  SeveralContainersError,
  SubnetTakenError,
  VolumeMissingError,
  VolumeTakenError,
  VolumeTooLargeError,
} from '../src/docker/containers/container-errors.js';
import { ParentGoneError } from '../src/agents/clones/clone-errors.js';
import { CleanupPendingError } from '../src/accounts/accounts/account-deletions.js';
import { NotFoundError, ServiceError } from '../src/lib/errors.js';
import { MailServerError } from '../src/accounts/mail-delivery/mail-transport.js';
import { ChannelError } from '../src/notifications/channel.js';
import { ObservationLimitError } from '../src/agents/watchdog/observation-limiter.js';
import { NoPortFreeError } from '../src/agents/agents/agent-ports.js';
import { MemoryFullError } from '../src/agents/memory/memory-sizes.js';
import { AgentNotReadyError } from '../src/agents/watchdog/await-ready.js';
import { AgentGoneError } from '../src/agents/agents/agents.js';
import { SupersededError } from '../src/agents/watchdog/watchdog-store.js';
import { RepairedLocallyError } from '../src/agents/local-repair/agent-guard.js';
import { LastingRefusalError, TimeBudgetSpentError } from './time-budget.js';

const FINAL = [
  AgentGoneError,
  AgentNotReadyError,
  DiskLowError,
  ForeignContainerError,
  ImageUnavailableError,
  LastingRefusalError,
  MemoryFullError,
  MemoryMissingError,
  NoPortFreeError,
  NotFoundError,
  ParentGoneError,
  PortTakenError,
  RepairedLocallyError,
  SeveralContainersError,
  SubnetTakenError,
  SupersededError,
  TimeBudgetSpentError,
  VolumeMissingError,
  VolumeTakenError,
  VolumeTooLargeError,
];

/** Converts a failure for the workflow: its class becomes the type; permanent failures are non-retryable. */
export async function asApplicationFailure<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof Error) || error instanceof TemporalFailure) throw error;
    // A cancelled wait ends with an AbortError, which Temporal recognizes as a cancellation.
    if (error.name === 'AbortError') throw error;
    throw ApplicationFailure.create({
      message: reasonOf(error),
      type: error.name,
      nonRetryable: FINAL.some((type) => error instanceof type),
      cause: error,
    });
  }
}

/** Errors whose messages this project writes, so that they may be shown to an agent's owner. */
const OURS = [
  ...FINAL,
  ChannelError,
  ContainerError,
  MailServerError,
  ObservationLimitError,
  ServiceError,
  CleanupPendingError,
];

/** Hides a library's message, which can contain paths, SQL and values: only the cause contains it. */
function reasonOf(error: Error): string {
  if (OURS.some((type) => error instanceof type)) return error.message;
  return 'The platform failed in this step (INTERNAL_ERROR)';
}
