import { condition, log, proxyActivities } from '@temporalio/workflow';
import type { ContainerActivities } from '../activities/containers.js';
import type { AgentRef } from '../src/agents/agent-ref.js';
import { failureReason, isRefusal } from './failure-reason.js';
import { containersTaskQueue } from './ids.js';
import { interruptible } from './interruptible.js';
import { proxyRecords } from './records.js';
import * as retries from './retries.js';
import type { Wakeups } from './wakeups.js';
import type { WatchdogStates } from './watchdog-states.js';

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

  /** Waits for as long as nothing is heard of it. When somebody has looked at it, it is stopped. */
  async keep(provisioned: boolean, isStale: () => boolean): Promise<void> {
    const wakeups = this.#wakeups;
    wakeups.isInterrupted = false;
    await condition(() => wakeups.isUrgent);
    if (isStale()) return;
    const { isWoken } = wakeups;
    wakeups.dismiss();
    if (!isWoken) return;
    try {
      const isDone = await interruptible(
        () => wakeups.isInterrupted,
        async () => {
          await (provisioned ? this.#docker.stopContainer(this.#agent) : this.#undoProvisioning());
          return true;
        },
      );
      if (isDone && this.#isRefused) await this.#tell('stopped', null);
    } catch (error) {
      if (!isRefusal(error)) throw error;
      const reason = failureReason(error);
      log.warn('what should not run cannot be taken away', { reason });
      // One that never ran has failed already, and says why.
      if (provisioned && !this.#isRefused) await this.#tell('stop_refused', reason);
    }
  }

  /** Tells how it went to stop what should not run; once, since it is tried with each look. */
  async #tell(cause: 'stopped' | 'stop_refused', reason: string | null): Promise<void> {
    await this.#states.go('stopped', cause, reason);
    this.#isRefused = cause === 'stop_refused';
  }

  /** Takes away what a failed provisioning could not. A volume stays: the next one adopts it. */
  async #undoProvisioning(): Promise<void> {
    await this.#docker.removeContainer(this.#agent);
    await this.#docker.removeNetwork(this.#agent);
    await this.#record.releasePort(this.#agent, this.#states.memory.version);
  }
}
