/** The states of an agent's life as the watchdog sees it (spec 3). */
export const WATCHDOG_STATES = [
  'stopped',
  'starting',
  'running',
  'degraded',
  'crash_loop',
  'repairing',
] as const;

export type WatchdogState = (typeof WATCHDOG_STATES)[number];

/** What leads from one state to the next. */
export const WATCHDOG_CAUSES = [
  /** The container ended with a code of its own. */
  'exit',
  /** The container ran out of memory. */
  'oom',
  /** The container was killed by a signal that nobody of ours sent. */
  'kill',
  /** Docker was told to stop the container, and not by us. */
  'stop',
  /** The container is not there any more. */
  'gone',
  /** The gateway does not answer its health check, or says that it is not well. */
  'unhealthy',
  /** The health check succeeds. */
  'healthy',
  /** A repair was verified. */
  'repaired',
  /** No attempt at a repair led to an agent that answers. */
  'repair_failed',
  /** What should run is brought up, and does not answer. */
  'start_failed',
  /** Its memory is missing: nothing is brought up before an operator gives it one. */
  'memory_missing',
  /** Docker, or the whole host, is back after it was away. */
  'host_returned',
  /** It should not run, and Docker refuses to stop it. */
  'stop_refused',
  /** Docker has stopped what it had refused to stop. */
  'stopped',
  /** An operation that somebody asked for. */
  'operation',
] as const;

export type WatchdogCause = (typeof WATCHDOG_CAUSES)[number];

/** How a container came to its end. */
export type DeathCause = Extract<WatchdogCause, 'exit' | 'oom' | 'kill' | 'stop' | 'gone'>;

/** What the watchdog remembers of an agent; small, because it goes from run to run. */
export interface WatchdogMemory {
  /** One more with each change that is written down, by which a late or an older writer is known. */
  readonly version: number;
  readonly state: WatchdogState;
  /** Unix milliseconds. */
  readonly since: number;
  /** When it crashed, in Unix milliseconds, oldest first: at most as many as the threshold. */
  readonly crashes: readonly number[];
  /** Attempts of the last repair. */
  readonly repairAttempts: number;
  /** When the last attempt at a repair began, in Unix milliseconds. */
  readonly lastRepair: number | null;
}

/** One change of state, as it is written down. */
export interface WatchdogTransition {
  /** Unique; made by the workflow, so that writing it twice writes it once. */
  readonly id: string;
  readonly from: WatchdogState;
  readonly cause: WatchdogCause;
  /** In words for people. */
  readonly reason: string | null;
  /** What is remembered from now on; its `state` is the new one, its `since` the time. */
  readonly memory: WatchdogMemory;
}

/** A change that the agent's host made by itself while the control plane was out of its reach. */
export interface PastTransition extends WatchdogTransition {
  /** How the container ended, where that was the cause. */
  readonly crash?: { readonly exitCode: number | null; readonly oomKilled: boolean };
}

/** Spec 3: milliseconds between killing the gateway and starting it, and until it is verified. */
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
 * Whether an agent is left alone for its own crashes.
 *
 * @param awayFrom Unix milliseconds since when Docker was away, 0 when nobody knows: a crash loop from
 *   then on was its doing.
 */
export function isCrashLoop(
  { state, since }: Pick<WatchdogMemory, 'state' | 'since'>,
  awayFrom: number,
): boolean {
  return state === 'crash_loop' && (awayFrom === 0 || since < awayFrom);
}

/**
 * The crashes that still count at `now`. One exactly as old as the window does, and where the clock
 * was set back, one that is as far ahead at most.
 */
export function crashesWithin(
  crashes: readonly number[],
  now: number,
  windowMs: number,
): readonly number[] {
  return crashes.filter((at) => Math.abs(now - at) <= windowMs);
}

/** Counts one more crash, and tells whether that makes a loop: at the threshold, not past it. */
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

/** Counts crashes that make no loop, the failed starts of a repair. */
export function countCrashes(
  crashes: readonly number[],
  times: readonly number[],
  settings: Parameters<typeof countCrash>[2],
): readonly number[] {
  return times.reduce((counted, at) => countCrash(counted, at, settings).crashes, crashes);
}

/**
 * What is remembered once it is known what the agent's host did by itself. What a supervisor counted
 * in that time were the same crashes.
 *
 * @param past oldest first.
 * @returns undefined when what the supervisor knows is newer than all of it.
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
