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

/** Spec 3: between killing the gateway and starting it, and between that and the verification. */
const PAUSE = '5 seconds';
const STARTUP_GRACE_MS = 30_000;

export interface RepairAgentInput extends AgentRef {
  readonly memory: WatchdogMemory;
  /** By an operation, which fails where Docker is away for long; the watchdog waits for it. */
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
  /** The agent's host has repaired it by itself meanwhile: a look tells how it is. */
  readonly overtaken: boolean;
  readonly attempts: number;
  /** When the last attempt began, in Unix milliseconds. */
  readonly lastAttempt: number;
  /** When starts failed, in Unix milliseconds: each counts as a crash. */
  readonly failedStarts: readonly number[];
  /** Why the last attempt failed. */
  readonly reason: string | null;
  /** No further attempt was made, because none could help. */
  readonly memoryIsMissing: boolean;
}

/**
 * Kills the gateway, starts it again and verifies that it is well; tries that so often. The
 * supervisor runs it, one at a time, and cancels it for what is more urgent: whatever it leaves,
 * the supervisor takes up.
 */
export async function repairAgent(input: RepairAgentInput): Promise<RepairOutcome> {
  const { memory, settings, isAskedFor = false, ...agent } = input;
  const taskQueue = containersTaskQueue(agent.host);
  const record = proxyRecords();
  const endless = !isAskedFor;
  const dockerCall = endless ? retries.endlessDockerCall : retries.dockerCall;
  const docker = proxyActivities<GuardedWatchdog>({ ...dockerCall, taskQueue });
  const look = endless ? retries.look : retries.boundedLook;
  const eyes = proxyActivities<GuardedWatchdog>({ ...look, taskQueue });

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
      if (tellsOvertaken(error)) return outcome(false, true);
      reason = failureReason(error);
      memoryIsMissing = isMemoryMissing(error);
    }
    log.warn('repair attempt failed', { attempt, reason });
    failedStarts.push(Date.now());
    if (memoryIsMissing || attempt >= settings.maxRepairAttempts) return outcome(false);
  }

  /** Why the agent is not well, after as many checks as a start is given; null when it is. */
  async function verify(summary: string): Promise<string | null> {
    for (let check = 1; ;) {
      const seen = await eyes.observeAgent.executeWithOptions(
        { summary: `${summary}: check ${check} of ${settings.startupFailureThreshold}` },
        [agent],
      );
      isOvertaken = seen.past !== undefined;
      if (seen.health === 'healthy' || isOvertaken) return null;
      // It is still at it, which is no failure, and goes on for minutes at most.
      const isStarting = seen.health === 'starting';
      const isLast = check >= settings.startupFailureThreshold || seen.health === 'stopped';
      if (isLast && !isStarting) return seen.reason ?? 'The agent does not answer';
      if (!isStarting) check++;
      await sleep(settings.degradedCheckIntervalMs, { summary: `${summary}: next check` });
    }
  }
}

function tellsOvertaken(error: unknown): boolean {
  const cause = error instanceof Error ? error.cause : undefined;
  return cause instanceof ApplicationFailure && cause.type === 'RepairedLocallyError';
}
