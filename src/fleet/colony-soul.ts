import type { AgentRow } from '../platform/database/models.js';
import { HEARTBEAT_CONVERSATION } from '../agents/heartbeat/heartbeat-sender.js';
import type { TenantDatabase } from '../platform/database/database.js';

export const SOUL_STATES = ['awake', 'idle', 'asleep'] as const;

/** Milliseconds since the last activity within which a running agent is awake. */
const AWAKE_MS = 5 * 60_000;

/** Times when an agent was last active. */
export interface Attention {
  /** The last answer in any conversation. */
  readonly lastMessageAt: Date | null;
  readonly lastHeartbeatAt: Date | null;
  readonly lastTaskAt: Date | null;
}

export async function attentionOf(tenant: TenantDatabase, agentId: string): Promise<Attention> {
  const [found] = await tenant.query<Attention>(
    `SELECT (SELECT max(created_at) FROM messages
              WHERE agent_id = $agentId AND role = 'assistant') AS "lastMessageAt",
            (SELECT created_at FROM messages
              WHERE agent_id = $agentId AND conversation = '${HEARTBEAT_CONVERSATION}'
              ORDER BY position DESC LIMIT 1) AS "lastHeartbeatAt",
            (SELECT max(last_run) FROM scheduled_tasks WHERE agent_id = $agentId) AS "lastTaskAt"`,
    { agentId },
  );
  return found ?? { lastMessageAt: null, lastHeartbeatAt: null, lastTaskAt: null };
}

/** Returns an agent's state: awake if it runs and was active lately, idle if it runs. */
export function soulState(
  { desired, status }: Pick<AgentRow, 'desired' | 'status'>,
  attention: Attention,
  now: Date,
): (typeof SOUL_STATES)[number] {
  if (desired !== 'running' || status !== 'active') return 'asleep';
  const { lastHeartbeatAt, lastMessageAt, lastTaskAt } = attention;
  const isAwake = [lastHeartbeatAt, lastMessageAt, lastTaskAt].some(
    (at) => at !== null && now.getTime() - at.getTime() < AWAKE_MS,
  );
  return isAwake ? 'awake' : 'idle';
}
