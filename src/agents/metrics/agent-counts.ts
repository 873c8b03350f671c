import { webStatus } from '../agents/web-status.js';
import type { TenantDatabase } from '../../platform/database/database.js';
import type { AgentStatus } from '../../platform/database/models.js';

export interface AgentCounts {
  readonly total: number;
  readonly running: number;
  readonly stopped: number;
  readonly provisioning: number;
  readonly error: number;
}

const countsSql = (ofUser: boolean) => `
  SELECT status, count(*)::integer AS count FROM agents
   WHERE desired <> 'deleted' ${ofUser ? 'AND user_id = $userId' : ''} GROUP BY status`;

/** Counts the tenant's agents by their web API status. */
export async function agentCounts(tenant: TenantDatabase): Promise<AgentCounts> {
  const { userId } = tenant;
  const rows = await tenant.query<{ status: AgentStatus; count: number }>(
    countsSql(userId !== undefined),
    { ...(userId !== undefined && { userId }) },
  );
  const counts = { running: 0, stopped: 0, provisioning: 0, error: 0 };
  for (const { status, count } of rows) counts[webStatus(status)] += count;
  return { total: rows.reduce((sum, { count }) => sum + count, 0), ...counts };
}
