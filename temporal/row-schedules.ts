import { isGrpcServiceError, type Client } from '@temporalio/client';
import { putSchedule, removeSchedule, type Schedule } from './put-schedule.js';
import { temporalCall } from './temporal-call.js';

const CALL_TIMEOUT_MS = 10_000;

/** gRPC's `INVALID_ARGUMENT`. */
const INVALID_ARGUMENT = 3;

/** Temporal does not accept a schedule, and would refuse it again. */
export class ScheduleRefusedError extends Error {
  override readonly name = 'ScheduleRefusedError';

  constructor(cause: unknown) {
    super('Temporal refuses the schedule', { cause });
  }
}

/**
 * Makes the schedule of a row, or removes it. Idempotent.
 * @throws UnavailableError; ScheduleRefusedError
 */
export async function applySchedule(
  client: Client,
  id: string,
  schedule: Schedule | undefined,
): Promise<void> {
  await temporalCall(client, CALL_TIMEOUT_MS, async () => {
    try {
      if (schedule) await putSchedule(client, schedule);
      else await removeSchedule(client, id);
    } catch (error) {
      throw isRefusal(error) ? new ScheduleRefusedError(error) : error;
    }
  });
}

/** Starts a run of a schedule now, unless a run is open. @throws UnavailableError */
export async function triggerSchedule(client: Client, id: string): Promise<void> {
  await temporalCall(client, CALL_TIMEOUT_MS, () => client.schedule.getHandle(id).trigger());
}

function isRefusal(error: unknown): boolean {
  const failure = error instanceof Error && error.cause !== undefined ? error.cause : error;
  return isGrpcServiceError(failure) && Number(failure.code) === INVALID_ARGUMENT;
}
