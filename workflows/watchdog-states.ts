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

/** The states that the watchdog of one agent goes through, each written down. */
export class WatchdogStates {
  memory: WatchdogMemory;
  /** Of the start that is under way. */
  failedChecks = 0;

  readonly #agent: AgentRef;
  readonly #record = proxyRecords();

  constructor(agent: AgentRef, memory: WatchdogMemory) {
    this.#agent = agent;
    this.memory = memory;
  }

  /** The change to another state; whoever asks for it writes it down and applies it. */
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

  /** Goes to another state, of an agent that should run unless said. */
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
 * A run's random numbers are the same when a workflow task is lost with what it has written down, such as
 * when its worker dies; the next one knows that, and what it goes on to write has a higher version.
 */
function changeId(version: number): string {
  const id = uuid4();
  return id.slice(0, -12) + version.toString(16).padStart(12, '0');
}

/** What is remembered of an agent with which nothing has happened yet. */
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
