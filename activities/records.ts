import { AgentRecords, NoPortFreeError } from '../src/agents/agent-records.js';
import { ApplicationFailure } from '@temporalio/common';

/** What workflows write to the database. Run as local activities: short and idempotent. */
export function createRecordActivities(records: AgentRecords) {
  return {
    reservePort: async (...args: Parameters<AgentRecords['reservePort']>) => {
      try {
        return await records.reservePort(...args);
      } catch (error) {
        // Waiting does not make a port; saying so does.
        if (error instanceof NoPortFreeError) {
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
