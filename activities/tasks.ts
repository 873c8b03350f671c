import type { OwnerTurns } from '../src/agents/chat/owner-turns.js';
import type { BegunRun, TaskRuns } from '../src/agents/tasks/task-runs.js';
import type { HostLimiters } from '../src/agents/watchdog/host-limiters.js';
import { asApplicationFailure } from './failures.js';
import { askInTurn, endLostTurn } from './owner-turns.js';

interface RecordParts {
  readonly runs: Pick<TaskRuns, 'begin' | 'finish' | 'question'>;
  readonly turns: Pick<OwnerTurns, 'endOf'>;
}

/** Creates the activities that only read and write rows of runs. */
export const createTaskRunRecordActivities = ({ runs, turns }: RecordParts) => ({
  beginTaskRun: (run: BegunRun) => asApplicationFailure(() => runs.begin(run)),
  endLostTaskRun: endLostTurn(turns, runs),
});

export type TaskRunRecordActivities = ReturnType<typeof createTaskRunRecordActivities>;

interface HostParts {
  readonly runs: Pick<TaskRuns, 'finish' | 'question'>;
  readonly turns: Pick<OwnerTurns, 'ask'>;
  readonly limiters: Pick<HostLimiters, 'turns'>;
}

/** Creates the activity of the worker on the agent's host. */
export const createTaskTurnActivities = ({ runs, ...parts }: HostParts) => ({
  askForTask: askInTurn(parts, runs),
});

export type TaskTurnActivities = ReturnType<typeof createTaskTurnActivities>;
