import { WorkflowExecutionAlreadyStartedError, type Priority } from '@temporalio/common';
import { condition, isCancellation, log, proxyActivities, setHandler } from '@temporalio/workflow';
import type { GuardedWatchdog } from '../activities/guarded.js';
import type { AgentRef } from '../src/types/agent-ref.js';
import type { ContainerHealth, Observation } from '../src/agents/watchdog/observation.js';
import type { SupervisedState } from '../src/agents/watchdog/watchdog-store.js';
import {
  countCrash,
  countCrashes,
  isCrashLoop,
  memoryAfter,
  type DeathCause,
  type PastTransition,
  type WatchdogCause,
  type WatchdogMemory,
  type WatchdogSettings,
  type WatchdogTransition,
} from '../src/types/watchdog.js';
import { bringBack } from './bring-up.js';
import { failureReason } from './failure-reason.js';
import { containersTaskQueue } from './ids.js';
import { interruptible } from './interruptible.js';
import { KeptStopped } from './kept-stopped.js';
import { isMemoryMissing } from './memory-missing.js';
import { showPhase } from './phase.js';
import type { RepairOutcome } from './repair-agent.js';
import { proxyRecords } from './records.js';
import * as retries from './retries.js';
import { startRepair } from './start-repair.js';
import {
  checkNow,
  containerEnded,
  dockerReturned,
  type DockerReturn,
  type SuperviseAgentInput,
} from './supervise-agent-messages.js';
import { Wakeups } from './wakeups.js';
import { WatchdogStates, nothingYet } from './watchdog-states.js';

const BROUGHT_UP = 'Docker is available again: the agent waits for its start';

/** State that passes from run to run. */
type WatchdogInput = Pick<SuperviseAgentInput, 'desired' | 'observed' | 'watchdog' | 'wakeups'>;

/**
 * Watches one agent that should run, and repairs it, from state to state (spec 3). Between steps it pauses
 * for an operation, or the supervisor continues as new.
 */
export class Watchdog {
  /** Undefined if the agent must be checked again. */
  #observed: ContainerHealth | undefined;
  /** The memory may differ from the database. */
  #isStale: boolean;
  /** Cause of the container's last end that was judged. */
  #death: DeathCause | undefined;
  #repairs = false;
  /** Id of the last applied transition by the agent's host; repeated ones are ignored. */
  #lastApplied: string | undefined;
  /** An operation controls the container. */
  #isPaused = false;
  /** Time of the last end within an absence of Docker after which the agent was brought back. */
  #broughtBackAfter: number | undefined;

  readonly #agent: AgentRef;
  readonly #wakeups: Wakeups;
  readonly #states: WatchdogStates;
  readonly #keptStopped: KeptStopped;
  readonly #record = proxyRecords();
  readonly #observer: GuardedWatchdog;
  readonly #healthWatch: GuardedWatchdog;
  readonly #degradedWatch: GuardedWatchdog;
  readonly #crashReport: GuardedWatchdog;

  constructor(agent: AgentRef, { desired, observed, watchdog, wakeups }: WatchdogInput) {
    this.#agent = agent;
    this.#observed = observed;
    this.#wakeups = new Wakeups(wakeups);
    this.#states = new WatchdogStates(agent, watchdog ?? nothingYet(desired));
    this.#keptStopped = new KeptStopped(agent, this.#wakeups, this.#states);
    this.#isStale = watchdog === undefined || this.#wakeups.checksNow;
    const taskQueue = containersTaskQueue(agent.host);
    this.#observer = proxyActivities({ ...retries.observation, taskQueue });
    this.#healthWatch = proxyActivities({ ...retries.healthWatch, taskQueue });
    this.#degradedWatch = proxyActivities({ ...retries.degradedWatch, taskQueue });
    this.#crashReport = proxyActivities({ ...retries.crashReport, taskQueue });

    setHandler(checkNow, () => {
      this.#wakeups.checksNow = true;
      this.#isStale = true;
    });
    setHandler(containerEnded, (end) => {
      // Operations and repairs stop the container on purpose, so only a check afterwards counts.
      if (this.#repairs || this.#isPaused) this.#wakeups.checksNow = true;
      else this.#wakeups.ended = end;
    });
    setHandler(dockerReturned, (back) => {
      this.#wakeups.returned = back;
    });
  }

  get memory(): WatchdogMemory {
    return this.#states.memory;
  }

  get state(): Pick<WatchdogInput, 'observed' | 'watchdog' | 'wakeups'> {
    const { hasSignal, state: wakeups } = this.#wakeups;
    const observed = this.#observed && { observed: this.#observed };
    return { watchdog: this.memory, ...observed, ...(hasSignal && { wakeups }) };
  }

  get isStale(): boolean {
    return this.#isStale;
  }

  invalidate(): void {
    this.#isStale = true;
    this.#isPaused = false;
  }

  restore({ desired, watchdog }: SupervisedState): void {
    this.#isStale = false;
    this.#states.memory = watchdog ?? nothingYet(desired);
  }

  /** Reports whether the current step may be a start of the agent. */
  get isBringingUp(): boolean {
    const { state } = this.memory;
    return state === 'repairing' || state === 'starting';
  }

  interrupt(): void {
    this.#wakeups.isInterrupted = true;
  }

  /** Pauses for an operation, which causes all changes to the container from now on. */
  pause(transition: WatchdogTransition | undefined): void {
    this.#wakeups.dismiss();
    this.#isPaused = true;
    this.#keptStopped.forget();
    if (transition) this.#states.memory = transition.memory;
  }

  /** Resumes after an operation that left a known health, or with a check if `observed` is undefined. */
  resume(observed: ContainerHealth | undefined, transition: WatchdogTransition | undefined): void {
    this.#isPaused = false;
    this.#observed = observed;
    if (transition) this.#states.memory = transition.memory;
    if (observed === 'healthy') this.#wakeups.markReturnHandled();
  }

  dismissWakeups(): void {
    this.#wakeups.dismiss();
  }

  /** Returns the transition to another state; the caller records and applies it. */
  transitionTo(...change: Parameters<WatchdogStates['transitionTo']>): WatchdogTransition {
    return this.#states.transitionTo(...change);
  }

  keepStopped(provisioned: boolean): Promise<void> {
    return this.#keptStopped.keep(provisioned, () => this.#isStale);
  }

  /** Performs the next step with an agent that should run; returns when an operation is pending. */
  async watch(): Promise<void> {
    this.#wakeups.isInterrupted = false;
    if (this.#wakeups.returned) return this.#comeBack(this.#wakeups.returned);
    switch (this.memory.state) {
      case 'crash_loop':
        this.#wakeups.dismiss();
        return condition(() => this.#wakeups.isUrgent);
      case 'degraded':
      case 'repairing':
        return this.#mend();
      default:
        return this.#check();
    }
  }

  async #check(): Promise<void> {
    const last = this.memory.state === 'running' ? 'healthy' : null;
    const watching = { memory: this.memory, lastApplied: this.#lastApplied };
    const seen = await this.#observe(() =>
      this.#healthWatch.watchHealth(this.#agent, last, watching),
    );
    if (seen && !(await this.#isGivenTime(seen))) await this.#judge(seen);
  }

  /** Reports whether an unanswered start gets another check after a pause before it counts as failed. */
  async #isGivenTime({ health }: Observation): Promise<boolean> {
    if (health !== 'unhealthy' || this.memory.state !== 'starting') return false;
    const settings = await this.#record.watchdogSettings();
    if (++this.#states.failedChecks >= settings.startupFailureThreshold) return false;
    await condition(() => this.#wakeups.isUrgent, settings.degradedCheckIntervalMs);
    return true;
  }

  /** Repairs an unhealthy agent, or waits for it to recover if automatic repair is off. */
  async #mend(): Promise<void> {
    const agent = this.#agent;
    const settings = await this.#record.watchdogSettings();
    const seen = settings.autoRepair
      ? await this.#observe(() => this.#observer.observeAgent(agent, this.#lastApplied))
      : await this.#observe(() =>
          this.#degradedWatch.watchDegraded(agent, this.#observed ?? null, this.#lastApplied),
        );
    if (!seen) return;
    // The container's end was counted when the agent became degraded, possibly by an earlier supervisor.
    const hasEnded = seen.health === 'stopped' && this.#observed !== undefined;
    if (seen.health === 'healthy' || (hasEnded && this.#observed !== 'stopped')) {
      return this.#judge(seen);
    }
    this.#observed = seen.health;
    if (settings.autoRepair) await this.#repair(settings, seen);
  }

  /** Returns a check's observation; undefined if something is more urgent, such as Docker's return. */
  async #observe(patiently: () => Promise<Observation>): Promise<Observation | undefined> {
    const seen = await this.#observeOnce(patiently);
    // If the agent did not start after this end, its state is judged.
    if (!seen?.away || seen.away.endedAt === this.#broughtBackAfter) return seen;
    this.#broughtBackAfter = seen.away.endedAt;
    this.#wakeups.returned ??= { awayFrom: seen.away.from };
    return undefined;
  }

  /** Returns a check's observation, or that of a requested one. */
  async #observeOnce(patiently: () => Promise<Observation>): Promise<Observation | undefined> {
    const isUrgent = () => this.#wakeups.isUrgent;
    let seen = isUrgent() ? undefined : await interruptible(isUrgent, patiently);
    if (this.#isStale) return seen?.past ? undefined : seen;
    if (
      !seen &&
      (this.#wakeups.checksNow || this.#wakeups.ended) &&
      !this.#wakeups.hasPriorityWork
    ) {
      this.#wakeups.checksNow = false;
      const end = this.#wakeups.ended;
      seen = await interruptible(
        () => this.#wakeups.hasPriorityWork,
        () => this.#observer.observeAgent(this.#agent, this.#lastApplied),
      );
      // A check interrupted by an operation is repeated, unless the operation has begun.
      if (seen) this.#wakeups.ended = undefined;
      if (seen?.past) return this.#takeIn(seen.past);
      // Docker's events distinguish a stop from a kill, but only its record proves an out-of-memory kill.
      if (seen?.health === 'stopped' && end) {
        return { ...seen, death: seen.death === 'oom' ? 'oom' : end.cause };
      }
      if (seen?.health === 'starting' && this.memory.state === 'running') {
        // The container ended and was started outside of the platform.
        await this.#states.go('starting', end?.cause ?? 'unhealthy', seen.reason);
        return undefined;
      }
    }
    return seen?.past ? this.#takeIn(seen.past) : seen;
  }

  /** Applies the transitions that the agent's host made while no supervisor was available. */
  async #takeIn(past: readonly PastTransition[]): Promise<undefined> {
    const last = past.at(-1);
    const settings = await this.#record.watchdogSettings();
    const memory = memoryAfter(this.memory, past, settings);
    await this.#record.recordPast(this.#agent, memory ? past.slice(0, -1) : past);
    this.#lastApplied = last?.id;
    this.#observed = undefined;
    if (!last || !memory) return undefined;
    this.#states.memory = memory;
    showPhase(memory.state, 'running', last.reason);
    await this.#record.recordTransition(this.#agent, { ...last, memory });
    return undefined;
  }

  async #judge(seen: Observation): Promise<void> {
    const { state } = this.memory;
    this.#observed = seen.health;
    this.#death = seen.death;
    if (seen.health === 'healthy') {
      if (state !== 'running') await this.#states.go('running', 'healthy', null);
    } else if (seen.health === 'stopped') {
      await this.#crash(seen.death ?? 'gone', seen.reason);
    } else if (state === 'running') {
      await this.#states.go('degraded', 'unhealthy', seen.reason);
    } else if (seen.health === 'unhealthy' && state === 'starting') {
      await this.#crash('start_failed', seen.reason);
    }
  }

  /** Counts a crash; at the threshold the agent is not repaired until a user or operator starts it. */
  async #crash(cause: WatchdogCause, reason: string | null): Promise<void> {
    const settings = await this.#record.watchdogSettings();
    const { crashes, isLoop } = countCrash(this.memory.crashes, Date.now(), settings);
    this.#states.memory = { ...this.memory, crashes };
    const { id } = await this.#states.go('degraded', cause, reason);
    try {
      const state = isLoop ? 'crash_loop' : 'degraded';
      await this.#crashReport.recordCrash(this.#agent, id, { ...this.memory, state });
    } catch (error) {
      if (isCancellation(error)) throw error;
      log.warn('details of a crash could not be recorded', { reason: failureReason(error) });
    }
    if (isLoop) await this.#states.go('crash_loop', cause, reason);
  }

  async #repair(settings: WatchdogSettings, seen: Observation): Promise<void> {
    // The cause of the end may have been known only when the end was judged.
    const death = seen.death && (this.#death ?? seen.death);
    await this.#states.go('repairing', death ?? 'unhealthy', seen.reason);
    try {
      const outcome = await interruptible(
        () => this.#wakeups.hasPriorityWork,
        () => this.runRepair(settings),
      );
      if (!outcome || outcome.overtaken) return;
      if (outcome.repaired) await this.#states.go('running', 'repaired', null);
      else if (outcome.memoryIsMissing) await this.#loseMemory(outcome.reason);
      else await this.#states.go('crash_loop', 'repair_failed', outcome.reason);
    } catch (error) {
      if (isCancellation(error)) throw error;
      // The repair of an earlier supervisor must end first.
      if (error instanceof WorkflowExecutionAlreadyStartedError) throw error;
      // The repair run itself was ended from outside.
      await this.#states.go('crash_loop', 'repair_failed', failureReason(error));
    }
  }

  /** Runs the repair as a child workflow, so that operators see each attempt. */
  async runRepair(settings: WatchdogSettings, priority?: Priority): Promise<RepairOutcome> {
    this.#repairs = true;
    try {
      const outcome = await startRepair(this.#agent, this.memory, settings, priority);
      const crashes = countCrashes(this.memory.crashes, outcome.failedStarts, settings);
      this.#states.memory = {
        ...this.memory,
        crashes,
        repairAttempts: outcome.attempts,
        lastRepair: outcome.lastAttempt,
      };
      this.#observed = outcome.repaired ? 'healthy' : undefined;
      return outcome;
    } finally {
      this.#repairs = false;
    }
  }

  /** Restarts an agent that an outage of Docker ended, without counting a crash. */
  async #comeBack(back: DockerReturn): Promise<void> {
    this.#wakeups.dismiss();
    this.#observed = undefined;
    const { awayFrom, isMet = false } = back;
    if (isCrashLoop(this.memory, awayFrom)) return;
    const crashes = this.memory.crashes.filter((at) => at < awayFrom);
    this.#states.memory = { ...this.memory, crashes };
    if (isMet && this.memory.state === 'running') {
      const seen = await interruptible(
        () => this.#wakeups.hasPriorityWork,
        () => this.#observer.observeAgent(this.#agent, this.#lastApplied),
      );
      if (!seen) this.#wakeups.returned ??= back;
      else this.#observed = seen.health;
      if (!seen || seen.health === 'healthy') return;
    }
    await this.#states.go('starting', 'host_returned', BROUGHT_UP);
    try {
      const isUp = await interruptible(
        () => this.#wakeups.hasPriorityWork,
        async () => {
          await bringBack(this.#agent);
          return true;
        },
      );
      if (!isUp) return;
      this.#observed = 'healthy';
      await this.#states.go('running', 'healthy', null);
    } catch (error) {
      if (isCancellation(error)) throw error;
      const reason = failureReason(error);
      if (isMemoryMissing(error)) return this.#loseMemory(reason);
      // The next check judges the resulting state.
      log.warn("an agent did not start again after Docker's outage", { reason });
    }
  }

  /** Leaves the agent as it is until an operator provides a memory. */
  async #loseMemory(reason: string | null): Promise<void> {
    await this.#states.go('crash_loop', 'memory_missing', reason);
  }
}
