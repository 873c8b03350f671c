import type { WhereOptions } from 'sequelize';
import type {
  Statements,
  TenantDatabase,
  TenantTransaction,
} from '../../platform/database/database.js';
import type { AgentRow } from '../../platform/database/models.js';
import { selectFrom } from '../../platform/database/schema/table.js';
import { Agent } from '../../platform/database/tables/agents.js';
import { NotFoundError } from '../../lib/errors.js';

export class AgentGoneError extends Error {
  override readonly name = 'AgentGoneError';

  constructor(readonly agentId: string) {
    super('The agent no longer exists');
  }
}

/** A page of a list, and the position that the next page starts after; none on the last page. */
export interface Page<T> {
  readonly items: readonly T[];
  readonly next: readonly string[] | undefined;
}

export type ListedAgent = Pick<
  AgentRow,
  | 'id'
  | 'name'
  | 'model'
  | 'aiProvider'
  | 'status'
  | 'subdomain'
  | 'port'
  | 'createdAt'
  | 'updatedAt'
> & {
  /** The model in `config.model`. */
  readonly ownModel: string | null;
};

/** Lists the tenant's agents, oldest first, without those being removed, after a previous page's `next`. */
export async function listAgents(
  tenant: TenantDatabase,
  page: { readonly limit: number; readonly after?: readonly [string, string] | undefined },
): Promise<Page<ListedAgent>> {
  const { limit, after } = page;
  const { userId } = tenant;
  const rows = await tenant.query<ListedAgent>(
    `SELECT id, name, model, ai_provider AS "aiProvider", config ->> 'model' AS "ownModel", status,
            subdomain, port,
            created_at AS "createdAt", updated_at AS "updatedAt"
       FROM agents
      WHERE desired IN ('running', 'stopped')
        ${userId === undefined ? '' : 'AND user_id = $userId'}
        ${after === undefined ? '' : 'AND (created_at, id) > ($createdAt::timestamptz, $id)'}
      ORDER BY created_at, id
      LIMIT $most`,
    // One row more than requested shows whether a next page exists.
    { userId, ...(after && { createdAt: after[0], id: after[1] }), most: limit + 1 },
  );
  const items = rows.slice(0, limit);
  const last = rows.length > limit ? items.at(-1) : undefined;
  return { items, next: last && [last.createdAt.toISOString(), last.id] };
}

/** Returns an agent. @throws NotFoundError also when the agent is another tenant's or being removed. */
export async function getAgent(tenant: TenantDatabase, id: string): Promise<AgentRow> {
  const agent = await findAgent(tenant, id);
  if (!agent || agent.desired === 'deleted') throw new NotFoundError('Agent not found');
  return agent;
}

/** Returns an agent, even one being removed; null if it was removed. */
export async function findAgent(tenant: TenantDatabase, id: string): Promise<AgentRow | null> {
  const sql = `${selectFrom(Agent)} WHERE id = $id AND deleted_at IS NULL`;
  const [agent] = await tenant.query<AgentRow>(sql, { id });
  return agent ?? null;
}

/** Returns an agent that was not removed, in the caller's transaction. */
export function presentAgent(db: TenantTransaction, id: string): Promise<AgentRow | null> {
  return db.Agent.findOne({ where: { id, deletedAt: null } });
}

/** Requires that all of these agents are the user's. @throws NotFoundError also for agents being removed */
export async function requireAgents(
  db: Statements,
  userId: string,
  agentIds: readonly string[],
): Promise<void> {
  const found = await db.query(
    `SELECT FROM agents WHERE id = ANY ($agentIds) AND user_id = $userId
        AND desired <> 'deleted' AND deleted_at IS NULL`,
    { agentIds, userId },
  );
  if (found.length < agentIds.length) throw new NotFoundError('Agent not found');
}

export async function updateAgent(
  db: TenantTransaction,
  id: string,
  values: Partial<AgentRow>,
  only: WhereOptions<AgentRow> = {},
): Promise<void> {
  await db.Agent.update(values, { where: { id, deletedAt: null, ...only } });
}
