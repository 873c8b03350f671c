import {
  ScheduleNotFoundError,
  ScheduleOverlapPolicy,
  type Client,
  type ScheduleOptionsStartWorkflowAction,
} from '@temporalio/client';
import { frequencyMs } from '../src/heartbeat/frequency.js';
import {
  anchorOf,
  type HeartbeatScheduler,
  type SetHeartbeat,
} from '../src/heartbeat/heartbeats.js';
import type { beatAgents } from '../workflows/beat-agents.js';
import { PLATFORM_TASK_QUEUE, beatAgentsId, heartbeatScheduleId } from '../workflows/ids.js';
import { AGENT_OWNER } from '../workflows/search-attributes.js';
import { temporalCall } from './temporal-call.js';
import { putSchedule, type ScheduleContent } from './put-schedule.js';

/** Less than others wait for the row of the setting, which is held meanwhile. */
const CALL_TIMEOUT_MS = 4_000;

/** A beat that was missed for longer, because Temporal was out, waits for the next one. */
const CATCHUP_WINDOW = '1 minute';

type BeatAction = ScheduleOptionsStartWorkflowAction<typeof beatAgents>;

/** Temporal's schedules of the users' heartbeats: one for each that is enabled. */
export class HeartbeatSchedules implements HeartbeatScheduler {
  constructor(private readonly client: Client) {}

  /**
   * Makes the user's schedule what the setting says. Again it changes nothing.
   *
   * @throws UnavailableError
   */
  async apply(heartbeat: SetHeartbeat): Promise<void> {
    await temporalCall(this.client, CALL_TIMEOUT_MS, () =>
      heartbeat.enabled
        ? putSchedule(this.client, heartbeatScheduleId(heartbeat.userId), scheduleOf(heartbeat))
        : this.remove(heartbeat.userId),
    );
  }

  private async remove(userId: string): Promise<void> {
    try {
      await this.client.schedule.getHandle(heartbeatScheduleId(userId)).delete();
    } catch (error) {
      if (!(error instanceof ScheduleNotFoundError)) throw error;
    }
  }
}

function scheduleOf(heartbeat: SetHeartbeat): ScheduleContent {
  const { userId } = heartbeat;
  const every = frequencyMs(heartbeat.frequency);
  const action: BeatAction = {
    type: 'startWorkflow',
    workflowType: 'beatAgents',
    workflowId: beatAgentsId(userId),
    taskQueue: PLATFORM_TASK_QUEUE,
    args: [{ userId }],
    typedSearchAttributes: [{ key: AGENT_OWNER, value: userId }],
  };
  return {
    spec: { intervals: [{ every, offset: anchorOf(heartbeat) % every }] },
    action,
    policies: { overlap: ScheduleOverlapPolicy.SKIP, catchupWindow: CATCHUP_WINDOW },
  };
}
