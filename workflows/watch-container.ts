import {
  CancellationScope,
  condition,
  log,
  proxyActivities,
  proxyLocalActivities,
} from '@temporalio/workflow';
import type { RecordActivities } from '../activities/records.js';
import type { WatchdogActivities } from '../activities/watchdog.js';
import type { AgentRef } from '../src/agents/agent-ref.js';
import type { ContainerHealth, Observation } from '../src/agents/observation.js';
import { bringUp } from './bring-up.js';
import { failureReason } from './failure-reason.js';
import { containersTaskQueue } from './ids.js';
import * as retries from './retries.js';

/** Milliseconds between two attempts to bring a container back by itself. */
const REVIVAL_PAUSE_MS = 120_000;

/** What the watch shares with its supervisor. */
export interface WatchContext {
  readonly agent: AgentRef;
  readonly show: (phase: string, reason: string | null) => void;
  /** Whether an operation or a signal ends the watch. */
  readonly isUrgent: () => boolean;
  /** Whether it was a signal; asked once for each, it forgets it. */
  readonly takeCall: () => boolean;
}

/**
 * The watch of the first version, before there was a watchdog: only histories that begin with it
 * are replayed through here, and nothing new takes this way.
 */
export class ContainerWatch {
  observed: ContainerHealth | undefined;
  /** Unix milliseconds of the last attempt to bring it back; 0 lets the next one go at once. */
  revivedAt = 0;
  #revival: CancellationScope | undefined;

  readonly #record = proxyLocalActivities<RecordActivities>(retries.records);

  constructor(private readonly context: WatchContext) {}

  cancelRevival(): void {
    this.#revival?.cancel();
  }

  async step(): Promise<void> {
    const { agent, isUrgent, show, takeCall } = this.context;
    const watch = proxyActivities<WatchdogActivities>({
      ...retries.healthWatch,
      taskQueue: containersTaskQueue(agent.host),
    });
    const scope = new CancellationScope();
    const seen = await scope.run(() =>
      Promise.race([
        watch.watchHealth(agent, this.observed ?? null),
        condition(isUrgent).then(() => undefined),
      ]),
    );
    scope.cancel();
    if (seen === undefined) {
      if (takeCall()) this.observed = undefined;
      return;
    }
    this.observed = seen.health;
    if (seen.health === 'stopped') return this.#revive(seen);
    show(seen.health === 'healthy' ? 'running' : 'error', seen.reason);
    await this.#record.recordObservation(agent, seen);
  }

  async #revive(seen: Observation): Promise<void> {
    const { agent, isUrgent, show } = this.context;
    show('error', seen.reason);
    await this.#record.recordObservation(agent, seen);
    this.observed = undefined;
    const rest = this.revivedAt + REVIVAL_PAUSE_MS - Date.now();
    if (rest > 0) await condition(isUrgent, rest);
    if (isUrgent()) return;
    this.revivedAt = Date.now();
    const revival = new CancellationScope();
    this.#revival = revival;
    try {
      await revival.run(() => bringUp(agent));
      this.observed = 'healthy';
      show('running', null);
    } catch (error) {
      if (revival.consideredCancelled) return;
      const reason = failureReason(error);
      log.warn('container did not come back', { reason });
      await this.#record.recordObservation(agent, { ...seen, reason });
      await condition(isUrgent, REVIVAL_PAUSE_MS);
    } finally {
      this.#revival = undefined;
    }
  }
}
