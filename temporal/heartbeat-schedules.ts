import { ScheduleNotFoundError, ScheduleOverlapPolicy, type Client } from '@temporalio/client';
import { frequencyMs } from '../src/agents/heartbeat/frequency.js';
import {
  anchorOf,
  type HeartbeatScheduler,
  type HeartbeatSetting,
} from '../src/agents/heartbeat/heartbeats.js';
import { sendHeartbeatsId, heartbeatScheduleId } from '../workflows/ids.js';
import { AGENT_OWNER } from '../workflows/search-attributes.js';
import { putSchedule, type Schedule } from './put-schedule.js';
import { temporalCall } from './temporal-call.js';

const CALL_TIMEOUT_MS = 10_000;

/** Temporal's schedules of the users' heartbeats: one for each enabled heartbeat. */
export class HeartbeatSchedules implements HeartbeatScheduler {
  readonly #client: Client;

  constructor(client: Client) {
    this.#client = client;
  }

  /**
   * Creates, updates or removes the user's schedule to match the setting. Idempotent.
   *
   * @throws UnavailableError
   */
  async apply(heartbeat: HeartbeatSetting): Promise<void> {
    await temporalCall(this.#client, CALL_TIMEOUT_MS, async () => {
      if (heartbeat.enabled) await putSchedule(this.#client, scheduleOf(heartbeat));
      else await this.#remove(heartbeat.userId);
    });
  }

  async #remove(userId: string): Promise<void> {
    try {
      await this.#client.schedule.getHandle(heartbeatScheduleId(userId)).delete();
    } catch (error) {
      if (!(error instanceof ScheduleNotFoundError)) throw error;
    }
  }
}

function scheduleOf(heartbeat: HeartbeatSetting): Schedule {
  const { userId } = heartbeat;
  return {
    id: heartbeatScheduleId(userId),
    runId: sendHeartbeatsId(userId),
    workflow: 'sendHeartbeats',
    args: [{ userId, setAt: heartbeat.updatedAt.toISOString() }],
    everyMs: frequencyMs(heartbeat.frequency),
    fromMs: anchorOf(heartbeat),
    overlap: ScheduleOverlapPolicy.SKIP,
    typedSearchAttributes: [{ key: AGENT_OWNER, value: userId }],
  };
}
