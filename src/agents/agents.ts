import { Op, type WhereOptions } from 'sequelize';
import type { TenantDatabase } from '../database/database.js';
import type { AgentRow } from '../database/models.js';
import { NotFoundError } from '../errors.js';

/** Where a page of a list begins: after this row, by creation time and then id. */
export interface AgentCursor {
  readonly createdAt: string;
  readonly id: string;
}

export interface Page<T, C> {
  readonly items: readonly T[];
  /** Of the next page; undefined on the last. */
  readonly next: C | undefined;
}

/** The tenant's agents, oldest first. Those being removed are left out. */
export async function listAgents(
  tenant: TenantDatabase,
  page: { readonly limit: number; readonly cursor?: AgentCursor | undefined },
): Promise<Page<AgentRow, AgentCursor>> {
  const { limit, cursor } = page;
  const after: WhereOptions<AgentRow> = cursor
    ? {
        [Op.or]: [
          { createdAt: { [Op.gt]: new Date(cursor.createdAt) } },
          { createdAt: new Date(cursor.createdAt), id: { [Op.gt]: cursor.id } },
        ],
      }
    : {};
  const rows = await tenant.transaction((transaction) =>
    tenant.models.Agent.findAll({
      where: { desired: ['running', 'stopped'], ...after },
      order: [
        ['createdAt', 'ASC'],
        ['id', 'ASC'],
      ],
      // One more than asked for tells whether there is a next page.
      limit: limit + 1,
      raw: true,
      transaction,
    }),
  );
  const items = rows.slice(0, limit);
  const last = items.at(-1);
  const next =
    rows.length > limit && last
      ? { createdAt: last.createdAt.toISOString(), id: last.id }
      : undefined;
  return { items, next };
}

/** @throws NotFoundError also when it is another tenant's, or being removed. */
export async function getAgent(tenant: TenantDatabase, id: string): Promise<AgentRow> {
  const agent = await findAgent(tenant, id);
  if (!agent || agent.desired === 'deleted') throw new NotFoundError('Agent not found');
  return agent;
}

/** Also one that is being removed; null when there is none, or none any more. */
export async function findAgent(tenant: TenantDatabase, id: string): Promise<AgentRow | null> {
  return tenant.transaction((transaction) =>
    tenant.models.Agent.findOne({ where: { id, deletedAt: null }, raw: true, transaction }),
  );
}
