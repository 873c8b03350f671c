import type { WhereOptions } from 'sequelize';
import type { TenantDatabase, TenantTransaction } from '../../platform/database/database.js';
import type { AgentRow } from '../../platform/database/models.js';
import { selectFrom } from '../../platform/database/schema/table.js';
import { Agent } from '../../platform/database/tables/agents.js';
import { NotFoundError } from '../../lib/errors.js';

/** The agent, or what it needs to run, is not in the database any more. */
export class AgentGoneError extends Error {
  constructor(readonly agentId: string) {
    super('The agent is no more');
    this.name = 'AgentGoneError';
  }
}

/** A part of a list, and the position after which the next one begins; none on the last. */
export interface Page<T> {
  readonly items: readonly T[];
  readonly next: readonly string[] | undefined;
}

/** What lists show of an agent. */
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
  /** What its `config.model` names. */
  readonly ownModel: string | null;
};

/**
 * The tenant's agents, oldest first. Those being removed are left out.
 *
 * @param page.after the `next` of the page before: a time as ISO 8601, and an id.
 */
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
    // One more than asked for tells whether there is a next page.
    { userId, ...(after && { createdAt: after[0], id: after[1] }), most: limit + 1 },
  );
  const items = rows.slice(0, limit);
  const last = rows.length > limit ? items.at(-1) : undefined;
  return { items, next: last && [last.createdAt.toISOString(), last.id] };
}

/** @throws NotFoundError also when it is another tenant's, or being removed. */
export async function getAgent(tenant: TenantDatabase, id: string): Promise<AgentRow> {
  const agent = await findAgent(tenant, id);
  if (!agent || agent.desired === 'deleted') throw new NotFoundError('Agent not found');
  return agent;
}

/** Also one that is being removed; null when there is none, or none any more. */
export async function findAgent(tenant: TenantDatabase, id: string): Promise<AgentRow | null> {
  const sql = `${selectFrom(Agent)} WHERE id = $id AND deleted_at IS NULL`;
  const [agent] = await tenant.query<AgentRow>(sql, { id });
  return agent ?? null;
}

/** One that is not removed, in a transaction that is under way. */
export function presentAgent(db: TenantTransaction, id: string): Promise<AgentRow | null> {
  return db.Agent.findOne({ where: { id, deletedAt: null } });
}

/** Changes an agent that is not removed, where the other columns are as `only` says. */
export async function updateAgent(
  db: TenantTransaction,
  id: string,
  values: Partial<AgentRow>,
  only: WhereOptions<AgentRow> = {},
): Promise<void> {
  await db.Agent.update(values, { where: { id, deletedAt: null, ...only } });
}
