import type { AgentRef } from '../../types/agent-ref.js';
import type { AgentSettings } from '../lifecycle/settings.js';
import { setBounded } from '../../lib/bounded-map.js';
import {
  DockerRefusedError,
  DockerUnavailableError,
} from '../../docker/containers/container-errors.js';
import { ENGINE_SHUTDOWN_MS } from '../../docker/containers/container-events.js';
import type { ContainerDeath } from '../../docker/containers/death-cause.js';
import type { DockerHost } from '../../docker/containers/docker-host.js';
import { FairLimiter } from '../../lib/fair-limiter.js';
import { jittered } from '../../lib/jitter.js';
import { pause } from '../../lib/pause.js';
import type { AgentGuard } from './agent-guard.js';
import type { DockerAbsences } from '../watchdog/docker-absence.js';
import { shouldRun, type JournalEntry } from './journal-entry.js';
import {
  LocalWatchdog,
  NotLocallyRepairableError,
  type LocalWatchdogDependencies,
  type RepairTimes,
} from './local-watchdog.js';
import type { ControlPlaneReach } from './control-plane-reach.js';

/** Milliseconds between two checks of who is in charge, and between two checks of all containers. */
const TICK_MS = 1_000;
const CHECK_MS = 5_000;

const RESTART_MS = 5_000;

/** Longest pause before a supervisor is notified again of local changes. */
const MAX_NOTIFY_PAUSE_MS = 10 * 60_000;

const MAX_DEATHS = 10_000;

const limiter = new FairLimiter({ atOnce: 20, perOwner: 20 });

export interface LocalRepairTimes extends RepairTimes {
  /** Milliseconds between two probes of the control plane. */
  readonly probe: number;
  /** Milliseconds without the control plane after which agents are repaired locally. */
  readonly away: number;
  /** Milliseconds before an agent is retried after a temporary failure. */
  readonly again: number;
  /** Milliseconds before a supervisor is notified again of local changes; doubles each time. */
  readonly notify: number;
}

export interface LocalRepairDependencies extends LocalWatchdogDependencies {
  readonly docker: Pick<DockerHost, 'containers' | 'volumes' | 'events'>;
  readonly settings: AgentSettings['watchdog'];
  readonly guard: AgentGuard;
  /** Shared with the supervisors' observations. */
  readonly absences: DockerAbsences;
  readonly reach: Pick<ControlPlaneReach, 'awayForMs'>;
  readonly times: LocalRepairTimes;
  readonly mayAct: () => boolean;
  /** Notifies an agent's supervisor so that it reads the local changes. */
  readonly notify: (agent: Pick<AgentRef, 'agentId' | 'userId'>) => Promise<void>;
}

/** Time of the next notification to a supervisor, by the monotonic clock, and the pause before it. */
interface Notifying {
  readonly next: number;
  readonly pause: number;
}

/** Keeps a host's agents running while the control plane is unreachable. */
export class LocalRepair {
  readonly #dependencies: LocalRepairDependencies;
  #isReached = false;
  #checkedAt = Number.NEGATIVE_INFINITY;
  #isInCharge = false;
  readonly #deaths = new Map<string, ContainerDeath>();
  /** Agents that cannot be repaired locally, with the monotonic time of the next try; cleared by any change. */
  readonly #left = new Map<string, number>();
  /** Monotonic time of the next health check of each running agent. */
  readonly #checks = new Map<string, number>();
  #notified = new Map<string, Notifying>();
  readonly #running = new Set<Promise<void>>();

  constructor(dependencies: LocalRepairDependencies) {
    this.#dependencies = dependencies;
  }

  /** Resolves when the signal has aborted and all repairs have ended. */
  async run(signal: AbortSignal): Promise<void> {
    await Promise.all([this.#listen(signal), this.#tick(signal)]);
    await Promise.all(this.#running);
  }

  async #listen(signal: AbortSignal): Promise<void> {
    const { absences, docker, log } = this.#dependencies;
    absences.began(0);
    while (!signal.aborted) {
      try {
        for await (const event of docker.events(signal)) {
          if (event.kind === 'death') {
            setBounded(this.#deaths, event.agentId, event, MAX_DEATHS);
            if (this.#isInCharge) this.#checkedAt = Number.NEGATIVE_INFINITY;
          } else if (event.kind === 'lost') {
            this.#isReached = false;
            absences.began(Date.now() - ENGINE_SHUTDOWN_MS);
          } else {
            const { lostAt } = event;
            absences.ended(lostAt === undefined ? 0 : lostAt - ENGINE_SHUTDOWN_MS);
            this.#left.clear();
            this.#isReached = true;
            log.debug('local repair receives Docker events');
          }
        }
      } catch (error) {
        log.error({ err: error }, "following Docker's events failed, retrying");
        this.#isReached = false;
        absences.began(Date.now() - ENGINE_SHUTDOWN_MS);
        await pause(jittered(RESTART_MS), signal);
      }
    }
  }

  async #tick(signal: AbortSignal): Promise<void> {
    const { log } = this.#dependencies;
    for (; !signal.aborted; await pause(jittered(TICK_MS), signal)) {
      try {
        this.#takeCharge();
        if (this.#isInCharge) await this.#checkAll(signal);
        else this.#notifyAll();
      } catch (error) {
        const isDockers =
          error instanceof DockerUnavailableError || error instanceof DockerRefusedError;
        if (!isDockers) log.error({ err: error }, 'local repair failed');
      }
    }
  }

  #takeCharge(): void {
    const { log, mayAct, reach, times } = this.#dependencies;
    const { awayForMs } = reach;
    const isAway = this.#isInCharge ? awayForMs > 0 : awayForMs >= times.away;
    const isInCharge = isAway && mayAct();
    if (isInCharge === this.#isInCharge) return;
    this.#isInCharge = isInCharge;
    this.#left.clear();
    this.#checks.clear();
    if (isInCharge)
      log.warn('supervisors are unreachable: agents of this host are repaired locally');
    else log.info('supervisors are reachable again');
  }

  async #checkAll(signal: AbortSignal): Promise<void> {
    if (!this.#isReached || performance.now() - this.#checkedAt < CHECK_MS) return;
    this.#checkedAt = performance.now();
    const { docker, guard, journal } = this.#dependencies;
    const running = await docker.containers.running();
    for (const entry of journal.entries()) {
      const { agentId } = entry;
      const isUnfinished = entry.past.length > 0 && entry.memory.state !== 'running';
      if (running.has(agentId) && !isUnfinished && !this.#isToBeChecked(agentId)) continue;
      if (!shouldRun(entry, this.#awayFrom) || this.#isLeft(agentId) || guard.isBusy(agentId))
        continue;
      const attending = this.#attend(entry, signal).finally(() => this.#running.delete(attending));
      this.#running.add(attending);
    }
  }

  /** Reports whether the health check is due: a hanging agent's container still runs. */
  #isToBeChecked(agentId: string): boolean {
    const { checkIntervalMs } = this.#dependencies.settings;
    const at = this.#checks.get(agentId);
    // The supervisor did its last check within one interval, so the first check is at a random time.
    if (at === undefined) {
      this.#checks.set(agentId, performance.now() + Math.random() * checkIntervalMs);
    }
    return at !== undefined && performance.now() >= at;
  }

  #isLeft(agentId: string): boolean {
    return performance.now() < (this.#left.get(agentId) ?? 0);
  }

  get #awayFrom(): number {
    return this.#dependencies.absences.past.at(-1)?.from ?? 0;
  }

  async #attend(entry: JournalEntry, signal: AbortSignal): Promise<void> {
    const { absences, guard, log, settings, times } = this.#dependencies;
    const { agentId } = entry;
    try {
      await guard.locally(agentId, async (stopped) => {
        const either = AbortSignal.any([signal, stopped]);
        const watchdog = new LocalWatchdog(this.#dependencies, entry, either);
        const isWell = await watchdog.attend(absences.past, this.#deaths.get(agentId));
        const next = isWell ? jittered(settings.checkIntervalMs) : 0;
        this.#checks.set(agentId, performance.now() + next);
      });
    } catch (error) {
      if (error instanceof DockerUnavailableError) return; // retried when Docker is available again
      if (error instanceof Error && error.name === 'AbortError') return;
      const { message: reason } = error instanceof Error ? error : { message: String(error) };
      const isLeft = this.#left.has(agentId);
      if (error instanceof NotLocallyRepairableError) {
        this.#left.set(agentId, Infinity);
        log.warn(
          { agentId, reason },
          'an agent cannot be repaired locally and waits for its supervisor',
        );
        return;
      }
      // For example, a restarted host has not yet checked that its networks are guarded.
      this.#left.set(agentId, performance.now() + times.again);
      if (isLeft) return;
      log.error({ err: error, agentId }, 'an agent cannot be repaired locally yet, retrying');
    }
  }

  /** Notifies supervisors until they have read the local changes. */
  #notifyAll(): void {
    const { guard, journal, log, reach, notify, times } = this.#dependencies;
    if (reach.awayForMs > 0) return;
    const now = performance.now();
    const before = this.#notified;
    this.#notified = new Map();
    for (const { agentId, userId, past, phase } of journal.entries()) {
      if (past.length === 0) continue;
      const last = before.get(agentId) ?? { next: 0, pause: 0 };
      this.#notified.set(agentId, last);
      if (phase === 'held' || guard.isBusy(agentId) || now < last.next) continue;
      const longer = Math.min(Math.max(last.pause * 2, times.notify), MAX_NOTIFY_PAUSE_MS);
      this.#notified.set(agentId, { next: now + longer, pause: longer });
      const notifying = limiter
        .run({ owner: userId }, () => notify({ agentId, userId }))
        .catch((error: unknown) =>
          log.warn({ err: error, agentId }, 'notifying a supervisor failed'),
        )
        .finally(() => this.#running.delete(notifying));
      this.#running.add(notifying);
    }
  }
}
