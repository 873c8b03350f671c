import { ScheduleNotFoundError, ScheduleOverlapPolicy, type Client } from '@temporalio/client';
import { reconcileHostId } from '../workflows/ids.js';
import { putSchedule, removeSchedule, type Schedule } from './put-schedule.js';
import { temporalCall } from './temporal-call.js';

const MINUTE_MS = 60_000;

const CALL_TIMEOUT_MS = 10_000;

const reconciliationOf = (host: string): Schedule => ({
  id: reconcileHostId(host),
  workflow: 'reconcileHost',
  args: [host],
  everyMs: 5 * MINUTE_MS,
  jitterMs: MINUTE_MS / 2,
  overlap: ScheduleOverlapPolicy.SKIP,
  // If the host's worker no longer runs, each pass is terminated before the next one.
  runTimeoutMs: 4 * MINUTE_MS,
});

/** Returns the periodic workflows, except users' heartbeats, which have their own schedules. */
const schedulesOf = (host: string | undefined): readonly Schedule[] => [
  ...(host === undefined ? [] : [reconciliationOf(host)]),
  {
    id: 'roll-up-usage',
    workflow: 'rollUpUsage',
    args: [],
    everyMs: MINUTE_MS,
    jitterMs: MINUTE_MS / 12,
    overlap: ScheduleOverlapPolicy.SKIP,
    runTimeoutMs: 2 * MINUTE_MS,
  },
  {
    id: 'expire-holds',
    workflow: 'expireHolds',
    args: [],
    // Holds of a process that died are released within two minutes.
    everyMs: MINUTE_MS / 2,
    jitterMs: MINUTE_MS / 30,
    overlap: ScheduleOverlapPolicy.SKIP,
    runTimeoutMs: 2 * MINUTE_MS,
  },
  {
    id: 'check-ledger',
    workflow: 'checkLedger',
    args: [],
    everyMs: 60 * MINUTE_MS,
    jitterMs: 5 * MINUTE_MS,
    overlap: ScheduleOverlapPolicy.SKIP,
    runTimeoutMs: 54 * MINUTE_MS,
  },
  {
    id: 'reconcile-billing',
    workflow: 'reconcileBilling',
    args: [],
    everyMs: 60 * MINUTE_MS,
    jitterMs: 5 * MINUTE_MS,
    overlap: ScheduleOverlapPolicy.SKIP,
    runTimeoutMs: 54 * MINUTE_MS,
  },
  {
    id: 'enforce-retention',
    workflow: 'enforceRetention',
    args: [],
    everyMs: 60 * MINUTE_MS,
    jitterMs: 5 * MINUTE_MS,
    overlap: ScheduleOverlapPolicy.SKIP,
    runTimeoutMs: 54 * MINUTE_MS,
  },
];

/**
 * Creates the schedules of the platform and of the Docker host beside this worker, if any, and triggers each once, unless an
 * operator has paused it. Otherwise idempotent.
 *
 * @throws UnavailableError
 */
export async function putSchedules(client: Client, host: string | undefined): Promise<void> {
  for (const schedule of schedulesOf(host)) {
    await temporalCall(client, CALL_TIMEOUT_MS, async () => {
      const { paused } = await putSchedule(client, schedule);
      if (paused) return;
      await client.schedule.getHandle(schedule.id).trigger(schedule.overlap);
    });
  }
}

/**
 * Creates missing schedules, as after a loss of Temporal's store.
 *
 * @returns true if any was missing.
 * @throws UnavailableError
 */
export async function restoreSchedules(client: Client, host: string | undefined): Promise<boolean> {
  for (const { id } of schedulesOf(host)) {
    const isThere = await temporalCall(client, CALL_TIMEOUT_MS, async () => {
      try {
        await client.schedule.getHandle(id).describe();
        return true;
      } catch (error) {
        if (error instanceof ScheduleNotFoundError) return false;
        throw error;
      }
    });
    if (isThere) continue;
    await putSchedules(client, host);
    return true;
  }
  return false;
}

/** Removes the schedules of a Docker host that no longer exists. @throws UnavailableError */
export async function removeSchedules(client: Client, host: string): Promise<void> {
  await temporalCall(client, CALL_TIMEOUT_MS, () => removeSchedule(client, reconcileHostId(host)));
}
