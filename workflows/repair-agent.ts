import {
  ApplicationFailure,
  isCancellation,
  log,
  proxyActivities,
  setCurrentDetails,
  sleep,
  uuid4,
} from '@temporalio/workflow';
import type { GuardedWatchdog } from '../activities/guarded.js';
import type { AgentRef } from '../src/types/agent-ref.js';
import { countCrashes, type WatchdogMemory, type WatchdogSettings } from '../src/types/watchdog.js';
import { startUp } from './bring-up.js';
import { failureReason } from './failure-reason.js';
import { containersTaskQueue } from './ids.js';
import { isMemoryMissing } from './memory-missing.js';
import { proxyRecords } from './records.js';
import * as retries from './retries.js';

/** Spec 3: pause between killing the gateway and starting it, and between the start and the verification. */
const PAUSE = '5 seconds';
const STARTUP_GRACE_MS = 30_000;

export interface RepairAgentInput extends AgentRef {
  readonly memory: WatchdogMemory;
  /** A repair by an operation fails if Docker is down for long; the watchdog's waits. */
  readonly isAskedFor?: boolean;
  readonly settings: Pick<
    WatchdogSettings,
    | 'maxRepairAttempts'
    | 'startupFailureThreshold'
    | 'degradedCheckIntervalMs'
    | 'crashLoopWindowMs'
    | 'crashLoopThreshold'
  >;
}

export interface RepairOutcome {
  readonly repaired: boolean;
  /** The agent's host has repaired the agent itself; a check shows its state. */
  readonly overtaken: boolean;
  readonly attempts: number;
  /** Start of the last attempt, in Unix milliseconds. */
  readonly lastAttempt: number;
  /** Unix milliseconds; each failed start counts as a crash. */
  readonly failedStarts: readonly number[];
  readonly reason: string | null;
  /** Attempts ended because the memory is missing and no retry can help. */
  readonly memoryIsMissing: boolean;
}

/**
 * Kills the gateway, starts it and verifies the agent's health, up to the configured attempts. The supervisor
 * runs one repair at a time, cancels it for urgent work, and handles whatever state it leaves.
 */
export async function repairAgent(input: RepairAgentInput): Promise<RepairOutcome> {
  const { memory, settings, isAskedFor = false, ...agent } = input;
  const taskQueue = containersTaskQueue(agent.host);
  const record = proxyRecords();
  const endless = !isAskedFor;
  const dockerCall = endless ? retries.endlessDockerCall : retries.dockerCall;
  const docker = proxyActivities<GuardedWatchdog>({ ...dockerCall, taskQueue });
  const observation = endless ? retries.observation : retries.boundedObservation;
  const observer = proxyActivities<GuardedWatchdog>({ ...observation, taskQueue });

  const failedStarts: number[] = [];
  let reason: string | null = null;
  let isOvertaken = false;
  let memoryIsMissing = false;
  for (let attempt = 1; ; attempt++) {
    const summary = `attempt ${attempt} of ${settings.maxRepairAttempts}`;
    const began = Date.now();
    setCurrentDetails(`**Repairing**, ${summary}`);
    await record.recordRepairAttempt(agent, {
      id: uuid4(),
      memory: { ...memory, repairAttempts: attempt, lastRepair: began },
      maxAttempts: settings.maxRepairAttempts,
    });
    const outcome = (repaired: boolean, overtaken = false): RepairOutcome => ({
      repaired,
      overtaken,
      attempts: attempt,
      lastAttempt: began,
      failedStarts,
      reason,
      memoryIsMissing,
    });
    try {
      const crashes = countCrashes(memory.crashes, failedStarts, settings);
      const now = { ...memory, crashes, repairAttempts: attempt, lastRepair: began };
      await docker.killGateway.executeWithOptions({ summary }, [agent, now]);
      await sleep(PAUSE, { summary: `${summary}: pause` });
      const runningMs = await startUp(agent, { endless });
      await sleep(Math.max(0, STARTUP_GRACE_MS - runningMs), {
        summary: `${summary}: startup grace`,
      });
      reason = await verify(summary);
      if (reason === null) return outcome(!isOvertaken, isOvertaken);
    } catch (error) {
      if (isCancellation(error)) throw error;
      if (isOvertakenFailure(error)) return outcome(false, true);
      reason = failureReason(error);
      memoryIsMissing = isMemoryMissing(error);
    }
    log.warn('repair attempt failed', { attempt, reason });
    failedStarts.push(Date.now());
    if (memoryIsMissing || attempt >= settings.maxRepairAttempts) return outcome(false);
  }

  /** Checks until the start's failure threshold; returns why the agent is not well, or null if it is. */
  async function verify(summary: string): Promise<string | null> {
    for (let check = 1; ;) {
      const seen = await observer.observeAgent.executeWithOptions(
        { summary: `${summary}: check ${check} of ${settings.startupFailureThreshold}` },
        [agent],
      );
      isOvertaken = seen.past !== undefined;
      if (seen.health === 'healthy' || isOvertaken) return null;
      // A start in progress is not a failure; it takes minutes at most.
      const isStarting = seen.health === 'starting';
      const isLast = check >= settings.startupFailureThreshold || seen.health === 'stopped';
      if (isLast && !isStarting) return seen.reason ?? 'The agent does not answer';
      if (!isStarting) check++;
      await sleep(settings.degradedCheckIntervalMs, { summary: `${summary}: next check` });
    }
  }
}

function isOvertakenFailure(error: unknown): boolean {
  const cause = error instanceof Error ? error.cause : undefined;
  return cause instanceof ApplicationFailure && cause.type === 'RepairedLocallyError';
}
