import type { TenantDatabase } from '../../platform/database/database.js';

/** Stored turns, and the milliseconds of complete ones; null without any. */
export interface ChatFigures {
  readonly turns: number;
  readonly failed: number;
  readonly p50Ms: number | null;
  readonly p95Ms: number | null;
  readonly p99Ms: number | null;
}

/** `agentId` is null for all agents together. */
export interface AgentChatFigures extends ChatFigures {
  readonly agentId: string | null;
}

interface ChatRow extends Pick<AgentChatFigures, 'agentId' | 'turns' | 'failed'> {
  /** Null without a complete turn. */
  readonly percentiles: readonly number[] | null;
}

/** Figures of all agents together, and of each, from an index alone. */
const chatSql = (ofUser: boolean, ofEach: boolean) => `
  SELECT ${ofEach ? 'a.id' : 'NULL'} AS "agentId", count(*)::integer AS turns,
         count(*) FILTER (WHERE m.status = 'failed')::integer AS failed,
         percentile_cont(ARRAY[0.5, 0.95, 0.99]) WITHIN GROUP (ORDER BY m.took_ms)
           FILTER (WHERE m.status = 'complete') AS percentiles
    FROM agents a JOIN messages m ON m.agent_id = a.id AND m.role = 'assistant'
     AND m.created_at >= $from::timestamptz
   ${ofUser ? 'WHERE a.user_id = $userId' : ''}
   GROUP BY GROUPING SETS (${ofEach ? '(a.id), ' : ''}())`;

/** Returns the figures of the turns since a time: of all of the tenant's agents together, and of each on demand. */
export async function chatFigures(
  tenant: TenantDatabase,
  from: Date,
  { ofEach }: { readonly ofEach: boolean },
): Promise<AgentChatFigures[]> {
  const { userId } = tenant;
  const values = { from: from.toISOString(), ...(userId !== undefined && { userId }) };
  const sql = chatSql(userId !== undefined, ofEach);
  const rows = await tenant.query<ChatRow>(sql, values, { plan: 'fresh' });
  return rows.map(({ percentiles, ...counts }) => {
    const [p50Ms = null, p95Ms = null, p99Ms = null] = (percentiles ?? []).map(Math.round);
    return { ...counts, p50Ms, p95Ms, p99Ms };
  });
}

/** Returns the figures of all agents together. */
export function allOf(figures: readonly AgentChatFigures[]): ChatFigures {
  const all = figures.find(({ agentId }) => agentId === null);
  if (!all) throw new TypeError('the set of all agents must return a row');
  const { turns, failed, p50Ms, p95Ms, p99Ms } = all;
  return { turns, failed, p50Ms, p95Ms, p99Ms };
}
