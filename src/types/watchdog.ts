/** The watchdog's states of an agent (spec 3). */
export const WATCHDOG_STATES = [
  'stopped',
  'starting',
  'running',
  'degraded',
  'crash_loop',
  'repairing',
] as const;

export type WatchdogState = (typeof WATCHDOG_STATES)[number];

export const WATCHDOG_CAUSES = [
  /** The container exited with its own exit code. */
  'exit',
  /** The container ran out of memory. */
  'oom',
  /** The container was killed by a signal that the platform did not send. */
  'kill',
  /** Docker stopped the container, not by the platform's request. */
  'stop',
  /** The container no longer exists. */
  'gone',
  /** The gateway does not respond to its health check, or reports a failure. */
  'unhealthy',
  /** The health check succeeds. */
  'healthy',
  /** A repair was verified as successful. */
  'repaired',
  'repair_failed',
  /** The agent was started but did not become ready. */
  'start_failed',
  /** The agent's memory is missing: the agent is not started until an operator provides one. */
  'memory_missing',
  /** Docker, or the whole host, is available again. */
  'host_returned',
  /** Docker refuses to stop an agent that should be stopped. */
  'stop_refused',
  /** Docker has stopped the agent after an earlier refusal to stop it. */
  'stopped',
  'operation',
] as const;

export type WatchdogCause = (typeof WATCHDOG_CAUSES)[number];

/** Causes of a container's end. */
export type DeathCause = Extract<WatchdogCause, 'exit' | 'oom' | 'kill' | 'stop' | 'gone'>;

/** The watchdog's memory of an agent; small, because it is passed from run to run. */
export interface WatchdogMemory {
  /** Incremented by each stored transition, to detect late or stale writers. */
  readonly version: number;
  readonly state: WatchdogState;
  /** Time of the last transition, in Unix milliseconds. */
  readonly since: number;
  /** Times of crashes in Unix milliseconds, oldest first; at most the threshold. */
  readonly crashes: readonly number[];
  readonly repairAttempts: number;
  /** Start of the last repair attempt, in Unix milliseconds. */
  readonly lastRepair: number | null;
}

/** A transition between states, as stored. */
export interface WatchdogTransition {
  /** A unique id made by the workflow, so that repeated writes store one row. */
  readonly id: string;
  readonly from: WatchdogState;
  readonly cause: WatchdogCause;
  /** Explanation for users. */
  readonly reason: string | null;
  /** The watchdog's memory afterwards; its `state` is the new state, its `since` the time. */
  readonly memory: WatchdogMemory;
}

/** A transition that the agent's host made by itself while cut off from the control plane. */
export interface PastTransition extends WatchdogTransition {
  /** The container's end, if that was the cause. */
  readonly crash?: { readonly exitCode: number | null; readonly oomKilled: boolean };
}

/** Milliseconds between killing and restarting the gateway, and until its verification (spec 3). */
export const REPAIR_PAUSE_MS = 5_000;
export const STARTUP_GRACE_MS = 30_000;

/** The settings `WATCHDOG_*` (spec 8) that workflows depend on. */
export interface WatchdogSettings {
  readonly degradedCheckIntervalMs: number;
  readonly autoRepair: boolean;
  readonly maxRepairAttempts: number;
  readonly startupFailureThreshold: number;
  readonly crashLoopThreshold: number;
  readonly crashLoopWindowMs: number;
}

/**
 * Reports whether an agent is left to an operator because of its own crashes.
 * @param awayFrom Unix milliseconds since when Docker was unavailable, 0 if unknown: a later crash loop was
 * caused by that and does not count.
 */
export function isCrashLoop(
  { state, since }: Pick<WatchdogMemory, 'state' | 'since'>,
  awayFrom: number,
): boolean {
  return state === 'crash_loop' && (awayFrom === 0 || since < awayFrom);
}

/** Returns the crashes within the window, around `now` in case the clock was set back. */
export function crashesWithin(
  crashes: readonly number[],
  now: number,
  windowMs: number,
): readonly number[] {
  return crashes.filter((at) => Math.abs(now - at) <= windowMs);
}

/** Counts a crash and reports whether the threshold is reached, which makes a crash loop. */
export function countCrash(
  crashes: readonly number[],
  at: number,
  settings: Pick<WatchdogSettings, 'crashLoopWindowMs' | 'crashLoopThreshold'>,
): { readonly crashes: readonly number[]; readonly isLoop: boolean } {
  const counted = [...crashesWithin(crashes, at, settings.crashLoopWindowMs), at];
  return {
    crashes: counted.slice(-settings.crashLoopThreshold),
    isLoop: counted.length >= settings.crashLoopThreshold,
  };
}

/** Counts crashes without detecting a loop, such as the failed starts of a repair. */
export function countCrashes(
  crashes: readonly number[],
  times: readonly number[],
  settings: Parameters<typeof countCrash>[2],
): readonly number[] {
  return times.reduce((counted, at) => countCrash(counted, at, settings).crashes, crashes);
}

/**
 * Merges the host's own transitions, oldest first, into the supervisor's memory; undefined if none is newer.
 * Crashes that the supervisor counted in the same period are the same crashes.
 */
export function memoryAfter(
  own: WatchdogMemory,
  past: readonly PastTransition[],
  { crashLoopThreshold }: Pick<WatchdogSettings, 'crashLoopThreshold'>,
): WatchdogMemory | undefined {
  const first = past.at(0)?.memory;
  const last = past.at(-1)?.memory;
  if (!first || !last || last.since <= own.since) return undefined;
  const others = own.crashes.filter((at) => at < first.since);
  const crashes = [...new Set([...others, ...last.crashes])].sort((one, other) => one - other);
  const version = own.version + 1;
  return { ...last, version, crashes: crashes.slice(-crashLoopThreshold) };
}
