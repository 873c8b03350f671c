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

type Stopped = { readonly isDone: true } | { readonly isDone: false; readonly reason: string };

export class KeptStopped {
  /** Docker has refused to stop the agent, and the refusal is recorded. */
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

  /** Clears an earlier refusal, because an operation now controls the container. */
  forget(): void {
    this.#isRefused = false;
  }

  /** Waits while the agent is known to be stopped; stops it when a signal requests a check. */
  async keep(provisioned: boolean, isStale: () => boolean): Promise<void> {
    const wakeups = this.#wakeups;
    wakeups.isInterrupted = false;
    // A stop failed, or its result was lost.
    const isUnstopped = provisioned && this.#states.memory.state !== 'stopped';
    const isDue = isUnstopped && !this.#isRefused;
    if (!isDue) await condition(() => wakeups.isUrgent);
    if (isStale()) return;
    const { hasSignal } = wakeups;
    wakeups.dismiss();
    if (!hasSignal && !isDue) return;
    const stopped = await this.#stop(provisioned);
    if (stopped?.isDone && isUnstopped) await this.#transitionTo('stopped', 'stopped', null);
    // An agent that never ran has a failed provisioning, which has the reason.
    if (stopped?.isDone === false && provisioned && !this.#isRefused) {
      await this.#transitionTo('running', 'stop_refused', stopped.reason);
    }
  }

  /** Stops the agent, or undoes its provisioning; undefined if a more urgent request arrived first. */
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
      // Retried at the next check of the agent.
      const reason = failureReason(error);
      log.warn('an agent that should not run could not be stopped', { reason });
      return { isDone: false, reason };
    }
  }

  /** Records the result of a stop; only once for refusals, because each check retries the stop. */
  async #transitionTo(
    state: 'stopped' | 'running',
    cause: 'stopped' | 'stop_refused',
    reason: string | null,
  ): Promise<void> {
    await this.#states.go(state, cause, reason, 'stopped');
    this.#isRefused = cause === 'stop_refused';
  }

  /** Removes what a failed provisioning could not. A volume stays: the next provisioning adopts it. */
  async #undoProvisioning(): Promise<void> {
    await this.#docker.removeContainer(this.#agent);
    await this.#docker.removeNetwork(this.#agent);
    await this.#record.releasePort(this.#agent, this.#states.memory.version);
  }
}
