import { ApplicationFailure } from '@temporalio/common';
import { NoPortFreeError, type AgentRecords } from '../src/agents/agent-records.js';
import { NotFoundError } from '../src/errors.js';

/** What workflows write to the database. Run as local activities: short and idempotent. */
export function createRecordActivities(records: AgentRecords) {
  return {
    reservePort: async (...args: Parameters<AgentRecords['reservePort']>) => {
      try {
        return await records.reservePort(...args);
      } catch (error) {
        // Waiting makes neither a port nor an agent; saying so does.
        if (error instanceof NoPortFreeError || error instanceof NotFoundError) {
          throw ApplicationFailure.nonRetryable(error.message, error.name);
        }
        throw error;
      }
    },
    releasePort: records.releasePort.bind(records),
    recordRunning: records.recordRunning.bind(records),
    recordObservation: records.recordObservation.bind(records),
    beginOperation: records.beginOperation.bind(records),
    finishOperation: records.finishOperation.bind(records),
  };
}

export type RecordActivities = ReturnType<typeof createRecordActivities>;
