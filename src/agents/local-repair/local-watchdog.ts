import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from 'pino';
import { deathCauseOf, describeEnd, observeAgent } from '../watchdog/observe-agent.js';
import type { HostLimiters } from '../watchdog/host-limiters.js';
import { FairLimiter } from '../../lib/fair-limiter.js';
import type { Observation } from '../watchdog/observation.js';
import { runningForMs, type StartProgress } from '../watchdog/start-progress.js';
import {
  countCrash,
  type DeathCause,
  type PastTransition,
  type WatchdogCause,
  type WatchdogMemory,
  type WatchdogSettings,
  type WatchdogState,
} from '../../types/watchdog.js';
import {
  ContainerMissingError,
  DockerRefusedError,
  PortTakenError,
} from '../../docker/containers/container-errors.js';
import type { ContainerState } from '../../docker/containers/container-view.js';
import type { ContainerDeath } from '../../docker/containers/death-cause.js';
import type { DockerHost } from '../../docker/containers/docker-host.js';
import { absenceAt, type DockerAbsence } from '../watchdog/docker-absence.js';
import type { HostJournal } from './host-journal.js';
import { withPast, type JournalEntry } from './journal-entry.js';

/** Milliseconds between two checks of a starting container. */
const STARTING_CHECK_MS = 1_000;

/** Milliseconds that a failed agent gets to answer a second check, as a supervisor allows. */
const SECOND_PROBE_MS = 2_000;

/** Milliseconds: an observed and a recorded end with a longer time between them count as two ends. */
const SAME_END_MS = 5_000;

/** Concurrent container checks across all agents. */
const limiter = new FairLimiter({ atOnce: 20, perOwner: 20 });

export interface RepairTimes {
  readonly pause: number;
  readonly grace: number;
}

export interface LocalWatchdogDependencies {
  readonly docker: Pick<DockerHost, 'containers' | 'volumes'>;
  readonly journal: HostJournal;
  readonly settings: WatchdogSettings;
  readonly times: RepairTimes;
  /** The limit on concurrent starts, shared with the supervisors. */
  readonly limiters: Pick<HostLimiters, 'starts'>;
  readonly progress: StartProgress;
  readonly log: Logger;
}

/** The repair would need a new container or volume, which only a supervisor may create. */
export class NotLocallyRepairableError extends Error {
  override readonly name = 'NotLocallyRepairableError';
}

interface End {
  readonly at: number;
  readonly cause: DeathCause;
  readonly reason: string;
  readonly crash: NonNullable<PastTransition['crash']>;
}

/**
 * Replaces an agent's supervisor by the same rules. It starts the existing container with its memory and
 * creates nothing. Each change is in the journal before the next step.
 */
export class LocalWatchdog {
  #entry: JournalEntry;
  readonly #dependencies: LocalWatchdogDependencies;
  readonly #signal: AbortSignal;
  #isWell = false;

  constructor(dependencies: LocalWatchdogDependencies, entry: JournalEntry, signal: AbortSignal) {
    this.#dependencies = dependencies;
    this.#entry = entry;
    this.#signal = signal;
  }

  /**
   * Starts, repairs or leaves the agent, or continues an earlier process's repair; true if it is healthy now.
   * @param reported Docker's last event for a container's end, if any.
   * @throws NotLocallyRepairableError, DockerUnavailableError
   */
  async attend(
    absences: readonly DockerAbsence[],
    reported: ContainerDeath | undefined,
  ): Promise<boolean> {
    const container = await this.#container();
    if (container.status === 'running' || container.status === 'paused') await this.#attendLiving();
    else await this.#attendEnded(container, absences, reported);
    return this.#isWell;
  }

  async #attendLiving(): Promise<void> {
    const { phase, memory, past } = this.#entry;
    if (past.length > 0 && memory.state === 'starting') return this.#awaitUp();
    if (past.length > 0 && phase === 'started') return this.#verifyAttempt();
    const seen = await this.#observeTwice();
    const isPast = past.length > 0 && memory.state !== 'running';
    if (seen.health === 'healthy' && isPast) return this.#recover('healthy');
    if (seen.health !== 'unhealthy' || !this.#dependencies.settings.autoRepair) return;
    const reason = reasonOf(seen);
    const trouble = { cause: 'unhealthy', reason } as const;
    if (phase === 'killed') return this.#attempt(memory.repairAttempts, trouble);
    if (phase === 'started') return this.#failAttempt(reason);
    if (memory.state !== 'degraded') await this.#transition('degraded', 'unhealthy', reason);
    return this.#attempt(1, trouble);
  }

  /** Checks again before an unhealthy result counts. */
  async #observeTwice(): Promise<Observation> {
    const seen = await this.#observe();
    return seen.health === 'unhealthy' ? this.#observe(SECOND_PROBE_MS) : seen;
  }

  async #attendEnded(
    container: ContainerState,
    absences: readonly DockerAbsence[],
    reported: ContainerDeath | undefined,
  ): Promise<void> {
    const { phase, memory } = this.#entry;
    if (container.status !== 'exited') {
      throw new NotLocallyRepairableError(`The container is ${container.status}`);
    }
    const end = endIn(container, reported);
    const absence = absenceAt(absences, end.at);
    if (absence) return this.#comeBack(absence);
    if (memory.state === 'crash_loop') return;
    if (!this.#dependencies.settings.autoRepair) return;
    // The crash was counted earlier.
    if (memory.state === 'degraded' && memory.since >= end.at) return this.#attempt(1, end);
    if (phase === 'killed') return this.#attempt(memory.repairAttempts, end);
    if (phase === 'started') return this.#failAttempt(end.reason);
    return this.#crash(end.cause, end);
  }

  /** @throws NotLocallyRepairableError unless the container is the recorded one with its memory. */
  async #container(): Promise<ContainerState> {
    const { agentId, containerId, userId, volumes } = this.#entry;
    const { docker } = this.#dependencies;
    return limiter.run({ owner: userId }, async () => {
      const container = await docker.containers.inspect(agentId);
      if (container?.id !== containerId) {
        throw new NotLocallyRepairableError('The container was removed or replaced');
      }
      for (const volume of volumes) {
        if (await docker.volumes.exists(agentId, volume)) continue;
        throw new NotLocallyRepairableError(`The volume ${volume} was removed`);
      }
      return container;
    });
  }

  /** Restarts the agent: a container that ended during Docker's absence has not crashed. */
  async #comeBack({ from }: DockerAbsence): Promise<void> {
    const crashes = this.#entry.memory.crashes.filter((at) => at < from);
    await this.#put({ phase: 'running' });
    // An earlier, failed attempt has recorded the transition.
    if (this.#entry.memory.state !== 'starting') {
      await this.#transition('starting', 'host_returned', null, { crashes });
    }
    await this.#start();
    await this.#awaitUp();
  }

  async #awaitUp(): Promise<void> {
    const seen = await this.#settle(Number.POSITIVE_INFINITY);
    if (seen.health === 'healthy') await this.#transition('running', 'healthy', null);
    else await this.#crash('start_failed', { at: Date.now(), reason: reasonOf(seen) });
  }

  /** Counts a crash. At the threshold, repairs stop until an operator acts. */
  async #crash(
    cause: WatchdogCause,
    end: Pick<End, 'at' | 'reason'> & Partial<Pick<End, 'crash'>>,
  ): Promise<void> {
    const { crashes, isLoop } = countCrash(
      this.#entry.memory.crashes,
      end.at,
      this.#dependencies.settings,
    );
    await this.#transition('degraded', cause, end.reason, { crashes }, end);
    if (isLoop) return this.#transition('crash_loop', cause, end.reason);
    if (!this.#dependencies.settings.autoRepair) return;
    return this.#attempt(1, { cause, reason: end.reason });
  }

  /** Makes one attempt at a repair, then the next ones. */
  async #attempt(
    attempt: number,
    { cause, reason }: { readonly cause: WatchdogCause; readonly reason: string },
  ): Promise<void> {
    const { docker, times } = this.#dependencies;
    const change = { repairAttempts: attempt, lastRepair: Date.now() };
    if (this.#entry.memory.state !== 'repairing') {
      await this.#transition('repairing', cause, reason, change);
    }
    await this.#put({ phase: 'killed', memory: { ...this.#entry.memory, ...change } });
    await docker.containers.kill(this.#entry.agentId);
    await this.#wait(times.pause);
    await this.#start();
    await this.#verifyAttempt();
  }

  async #verifyAttempt(): Promise<void> {
    const { settings, times } = this.#dependencies;
    await this.#wait(Math.max(0, times.grace - runningForMs(await this.#container())));
    for (let check = 1; ;) {
      const seen = await this.#observe();
      if (seen.health === 'healthy') return this.#recover('repaired');
      // Still starting is not a failure; the wait is limited to a few minutes.
      const isStarting = seen.health === 'starting';
      const isLast = check >= settings.startupFailureThreshold || seen.health === 'stopped';
      if (isLast && !isStarting) return this.#failAttempt(reasonOf(seen));
      if (!isStarting) check++;
      await this.#wait(settings.degradedCheckIntervalMs);
    }
  }

  async #recover(cause: 'healthy' | 'repaired'): Promise<void> {
    await this.#put({ phase: 'running' });
    await this.#transition('running', cause, null);
  }

  async #failAttempt(reason: string): Promise<void> {
    const { settings } = this.#dependencies;
    const { memory } = this.#entry;
    const { crashes } = countCrash(memory.crashes, Date.now(), settings);
    if (memory.repairAttempts >= settings.maxRepairAttempts) {
      return this.#transition('crash_loop', 'repair_failed', reason, { crashes });
    }
    await this.#put({ memory: { ...memory, crashes } });
    return this.#attempt(memory.repairAttempts + 1, { cause: 'start_failed', reason });
  }

  /** Starts the container in its turn, and frees the turn when the agent answers. */
  async #start(): Promise<void> {
    const { docker, times, limiters } = this.#dependencies;
    const caller = { owner: this.#entry.userId, signal: this.#signal };
    await limiters.starts.run(caller, async () => {
      await this.#container();
      try {
        await docker.containers.start(this.#entry.agentId);
      } catch (error) {
        const isMendedByMaking =
          error instanceof ContainerMissingError ||
          error instanceof DockerRefusedError ||
          error instanceof PortTakenError;
        if (!isMendedByMaking) throw error;
        throw new NotLocallyRepairableError(error.message, { cause: error });
      }
      if (this.#entry.phase === 'killed') await this.#put({ phase: 'started' });
      await this.#settle(times.grace);
    });
  }

  async #settle(forMs: number): Promise<Observation> {
    for (const until = performance.now() + forMs; ; await this.#wait(STARTING_CHECK_MS)) {
      const seen = await this.#observe();
      if (seen.health !== 'starting' || performance.now() >= until) return seen;
    }
  }

  async #observe(timeoutMs?: number): Promise<Observation> {
    const { port } = await this.#container();
    if (port === undefined)
      throw new NotLocallyRepairableError('The container has no published port');
    const { docker, progress } = this.#dependencies;
    const observer = { containers: docker.containers, progress };
    const seen = await observeAgent(observer, this.#entry.agentId, port, timeoutMs);
    this.#isWell = seen.health === 'healthy';
    return seen;
  }

  async #transition(
    state: WatchdogState,
    cause: WatchdogCause,
    reason: string | null,
    change: Partial<WatchdogMemory> = {},
    { at = Date.now(), crash }: Partial<Pick<End, 'at' | 'crash'>> = {},
  ): Promise<void> {
    const { agentId, memory: before } = this.#entry;
    const memory = { ...before, ...change, state, since: at };
    const made = { id: randomUUID(), from: before.state, cause, reason, memory };
    this.#dependencies.log.warn({ agentId, from: made.from, to: state, cause, reason }, 'locally');
    await this.#put(withPast(this.#entry, { ...made, ...(crash && { crash }) }));
  }

  async #put(change: Partial<JournalEntry>): Promise<void> {
    this.#signal.throwIfAborted();
    this.#entry = { ...this.#entry, ...change };
    await this.#dependencies.journal.set(this.#entry);
    this.#signal.throwIfAborted();
  }

  async #wait(ms: number): Promise<void> {
    await delay(ms, undefined, { signal: this.#signal });
  }
}

function reasonOf({ reason }: Observation): string {
  return reason ?? 'The agent does not answer';
}

/**
 * Returns the end of a container. Docker's event distinguishes a stop from a kill; only the
 * container's state includes a lack of memory that Docker reported after the event.
 */
function endIn(container: ContainerState, reported: ContainerDeath | undefined): End {
  const { exitCode = null, finishedAt, id } = container;
  const death = deathCauseOf(container);
  const at = finishedAt === undefined ? 0 : Date.parse(finishedAt);
  const isThis = reported?.containerId === id && Math.abs(reported.at - at) < SAME_END_MS;
  const cause = isThis && death !== 'oom' ? reported.cause : death;
  const oomKilled = cause === 'oom';
  const reason = describeEnd({ ...container, oomKilled });
  return { at, cause, reason, crash: { exitCode, oomKilled } };
}
