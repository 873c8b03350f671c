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

const COUNTS = `count(*)::integer AS turns,
         count(*) FILTER (WHERE m.status = 'failed')::integer AS failed`;

/** The turns of agents since `$from`, only from an index. */
const TURNS = `
    FROM agents a JOIN messages m ON m.agent_id = a.id AND m.role = 'assistant'
     AND m.created_at >= $from::timestamptz`;

/** Figures of all agents together, and of each. */
const chatSql = (ofUser: boolean, ofEach: boolean) => `
  SELECT ${ofEach ? 'a.id' : 'NULL'} AS "agentId", ${COUNTS},
         percentile_cont(ARRAY[0.5, 0.95, 0.99]) WITHIN GROUP (ORDER BY m.took_ms)
           FILTER (WHERE m.status = 'complete') AS percentiles${TURNS}
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

/** Returns how many turns of a user's agents there are since a time, and how many of these failed. */
export async function chatCounts(
  tenant: TenantDatabase,
  userId: string,
  from: Date,
): Promise<Pick<ChatFigures, 'turns' | 'failed'>> {
  const [counts] = await tenant.query<Pick<ChatFigures, 'turns' | 'failed'>>(
    `SELECT ${COUNTS}${TURNS} WHERE a.user_id = $userId`,
    { userId, from: from.toISOString() },
    { plan: 'fresh' },
  );
  if (!counts) throw new TypeError('a sum over no rows must still return a row');
  return counts;
}

/** Returns the figures of all agents together. */
export function allOf(figures: readonly AgentChatFigures[]): ChatFigures {
  const all = figures.find(({ agentId }) => agentId === null);
  if (!all) throw new TypeError('the set of all agents must return a row');
  const { turns, failed, p50Ms, p95Ms, p99Ms } = all;
  return { turns, failed, p50Ms, p95Ms, p99Ms };
}
