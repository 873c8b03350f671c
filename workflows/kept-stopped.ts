import { condition, isCancellation, log, proxyActivities } from '@temporalio/workflow';
import type { ContainerActivities } from '../activities/containers.js';
import type { AgentRef } from '../src/types/agent-ref.js';
import { failureReason, isRefusal } from './failure-reason.js';
import { containersTaskQueue } from './ids.js';
import { interruptible } from './interruptible.js';
import { proxyRecords } from './records.js';
import * as retries from './retries.js';
import type { Wakeups } from './wakeups.js';
import type { WatchdogStates } from './watchdog-states.js';

/** Whether what should not run was taken away, or why that cannot be done. */
type Stopped = { readonly isDone: true } | { readonly isDone: false; readonly reason: string };

/** Keeps an agent stopped that should not run. */
export class KeptStopped {
  /** Docker refuses to stop it, which is told. */
  #isRefused = false;

  readonly #agent: AgentRef;
  readonly #wakeups: Wakeups;
  readonly #states: WatchdogStates;
  readonly #record = proxyRecords();
  readonly #docker: ContainerActivities;

  constructor(agent: AgentRef, wakeups: Wakeups, states: WatchdogStates) {
    this.#agent = agent;
    this.#wakeups = wakeups;
    this.#states = states;
    const taskQueue = containersTaskQueue(agent.host);
    this.#docker = proxyActivities({ ...retries.endlessDockerCall, taskQueue });
  }

  /** An operation has the container: what was refused before does not count any more. */
  forget(): void {
    this.#isRefused = false;
  }

  /**
   * Waits for as long as it is known to be stopped and nothing is heard of it. When somebody has looked at
   * it, it is stopped.
   */
  async keep(provisioned: boolean, isStale: () => boolean): Promise<void> {
    const wakeups = this.#wakeups;
    wakeups.isInterrupted = false;
    // A stop has failed, or nobody was there to hear how it ended.
    const isUnstopped = provisioned && this.#states.memory.state !== 'stopped';
    const isDue = isUnstopped && !this.#isRefused;
    if (!isDue) await condition(() => wakeups.isUrgent);
    if (isStale()) return;
    const { isWoken } = wakeups;
    wakeups.dismiss();
    if (!isWoken && !isDue) return;
    const stopped = await this.#stop(provisioned);
    if (stopped?.isDone && isUnstopped) await this.#tell('stopped', 'stopped', null);
    // One that never ran has failed already, and says why.
    if (stopped?.isDone === false && provisioned && !this.#isRefused) {
      await this.#tell('running', 'stop_refused', stopped.reason);
    }
  }

  /** Undefined when something else goes before it. */
  async #stop(provisioned: boolean): Promise<Stopped | undefined> {
    try {
      return await interruptible(
        () => this.#wakeups.isInterrupted,
        async () => {
          await (provisioned ? this.#docker.stopContainer(this.#agent) : this.#undoProvisioning());
          return { isDone: true };
        },
      );
    } catch (error) {
      if (isCancellation(error) || !(provisioned || isRefusal(error))) throw error;
      // It is tried again when somebody has looked at the agent.
      const reason = failureReason(error);
      log.warn('what should not run cannot be taken away', { reason });
      return { isDone: false, reason };
    }
  }

  /** Tells how it went to stop what should not run; once, since it is tried with each look. */
  async #tell(
    state: 'stopped' | 'running',
    cause: 'stopped' | 'stop_refused',
    reason: string | null,
  ): Promise<void> {
    await this.#states.go(state, cause, reason, 'stopped');
    this.#isRefused = cause === 'stop_refused';
  }

  /** Takes away what a failed provisioning could not. A volume stays: the next one adopts it. */
  async #undoProvisioning(): Promise<void> {
    await this.#docker.removeContainer(this.#agent);
    await this.#docker.removeNetwork(this.#agent);
    await this.#record.releasePort(this.#agent, this.#states.memory.version);
  }
}
