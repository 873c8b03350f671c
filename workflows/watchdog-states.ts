import { uuid4 } from '@temporalio/workflow';
import type { AgentRef } from '../src/types/agent-ref.js';
import type {
  WatchdogCause,
  WatchdogMemory,
  WatchdogState,
  WatchdogTransition,
} from '../src/types/watchdog.js';
import { showPhase } from './phase.js';
import { proxyRecords } from './records.js';

/** State transitions of one agent's watchdog, each of them recorded. */
export class WatchdogStates {
  memory: WatchdogMemory;
  /** Failed checks of the start in progress. */
  failedChecks = 0;

  readonly #agent: AgentRef;
  readonly #record = proxyRecords();

  constructor(agent: AgentRef, memory: WatchdogMemory) {
    this.#agent = agent;
    this.memory = memory;
  }

  /** Returns the transition to another state; the caller records and applies it. */
  transitionTo(
    state: WatchdogState,
    cause: WatchdogCause,
    reason: string | null,
    cleared?: Pick<WatchdogMemory, 'crashes' | 'repairAttempts'>,
  ): WatchdogTransition {
    this.failedChecks = 0;
    const version = this.memory.version + 1;
    const memory = { ...this.memory, ...cleared, version, state, since: Date.now() };
    return { id: changeId(version), from: this.memory.state, cause, reason, memory };
  }

  /** Applies and records a transition; `desired` defaults to running. */
  async go(
    state: WatchdogState,
    cause: WatchdogCause,
    reason: string | null,
    desired: 'running' | 'stopped' = 'running',
  ): Promise<WatchdogTransition> {
    const made = this.transitionTo(state, cause, reason);
    this.memory = made.memory;
    showPhase(state, desired, reason);
    await this.#record.recordTransition(this.#agent, made);
    return made;
  }
}

/**
 * Returns an id that includes the version: a run repeats its random numbers if a workflow task is lost after
 * it wrote to the database, for example with its worker; later writes have a higher version.
 */
function changeId(version: number): string {
  const id = uuid4();
  return id.slice(0, -12) + version.toString(16).padStart(12, '0');
}

export function nothingYet(desired: 'running' | 'stopped'): WatchdogMemory {
  return {
    version: 0,
    state: desired === 'running' ? 'starting' : 'stopped',
    since: Date.now(),
    crashes: [],
    repairAttempts: 0,
    lastRepair: null,
  };
}
