import { ScheduleOverlapPolicy, type Client } from '@temporalio/client';
import { frequencyMs } from '../src/agents/heartbeat/frequency.js';
import {
  anchorOf,
  type HeartbeatScheduler,
  type HeartbeatSetting,
} from '../src/agents/heartbeat/heartbeats.js';
import { sendHeartbeatsId, heartbeatScheduleId } from '../workflows/ids.js';
import { AGENT_OWNER } from '../workflows/search-attributes.js';
import type { Schedule } from './put-schedule.js';
import { applySchedule } from './row-schedules.js';

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
    const id = heartbeatScheduleId(heartbeat.userId);
    const schedule = heartbeat.enabled ? scheduleOf(id, heartbeat) : undefined;
    await applySchedule(this.#client, id, schedule);
  }
}

function scheduleOf(id: string, heartbeat: HeartbeatSetting): Schedule {
  const { userId } = heartbeat;
  return {
    id,
    runId: sendHeartbeatsId(userId),
    workflow: 'sendHeartbeats',
    args: [{ userId, setAt: heartbeat.updatedAt.toISOString() }],
    everyMs: frequencyMs(heartbeat.frequency),
    fromMs: anchorOf(heartbeat),
    overlap: ScheduleOverlapPolicy.SKIP,
    typedSearchAttributes: [{ key: AGENT_OWNER, value: userId }],
  };
}
