import type { AgentPorts } from '../src/agents/agents/agent-ports.js';
import type { OperationStore } from '../src/agents/operations/operation-store.js';
import type { WatchdogStore } from '../src/agents/watchdog/watchdog-store.js';
import type { WatchdogSettings } from '../src/types/watchdog.js';
import { asApplicationFailure } from './failures.js';

interface RecordParts {
  readonly operations: OperationStore;
  readonly ports: AgentPorts;
  readonly settings: WatchdogSettings;
  readonly states: WatchdogStore;
}

/** Creates the activities that write to the database. Run as local activities: short and idempotent. */
export function createRecordActivities({ operations, ports, settings, states }: RecordParts) {
  const record =
    <Args extends unknown[], Answer>(write: (...args: Args) => Promise<Answer>) =>
    (...args: Args) =>
      asApplicationFailure(() => write(...args));

  return {
    loadSupervisedState: record(states.load.bind(states)),
    reservePort: record(ports.reserve.bind(ports)),
    releasePort: record(ports.release.bind(ports)),
    recordRunning: record(states.recordRunning.bind(states)),
    /** Read before every use, so that a change reaches supervisors that run for months. */
    watchdogSettings: () => Promise.resolve(settings),
    recordTransition: record(states.recordTransition.bind(states)),
    recordPast: record(states.recordPast.bind(states)),
    recordRepairAttempt: record(states.recordRepairAttempt.bind(states)),
    beginOperation: record(operations.begin.bind(operations)),
    finishOperation: record(operations.finish.bind(operations)),
  };
}

export type RecordActivities = ReturnType<typeof createRecordActivities>;
