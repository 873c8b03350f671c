import { webStatus, type WebStatus } from '../agents/agents/web-status.js';
import type { TenantDatabase } from '../platform/database/database.js';
import type { AgentStatus } from '../platform/database/models.js';
import type { Specialization } from '../types/clone-terms.js';

export const MAX_AGENTS = 500;
const MAX_GENERATIONS = 50;

export interface ColonyNode {
  readonly id: string;
  readonly name: string;
  readonly generation: number;
  readonly specialization: Specialization;
  /** `deleted` for a removed ancestor of an existing agent. */
  readonly status: WebStatus | 'deleted';
  readonly createdAt: Date;
  readonly children: readonly ColonyNode[];
}

export interface ColonyTree {
  /** Existing agents in the tree. */
  readonly size: number;
  /** Levels of the tree. */
  readonly generations: number;
  /** True if agents are missing because there are too many, or too many generations. */
  readonly truncated: boolean;
  readonly roots: readonly ColonyNode[];
}

interface AgentRow extends Omit<ColonyNode, 'children' | 'status'> {
  readonly status: AgentStatus | 'deleted';
  readonly parentAgentId: string | null;
}

/** Placeholder for the parent of a root. */
const NO_PARENT = '';

/** The oldest agents, and their ancestors, of which the removed ones are kept for a while. */
const LINEAGE = `
  WITH RECURSIVE lineage AS (
    (SELECT id, parent_agent_id FROM agents WHERE user_id = $userId AND desired <> 'deleted'
      ORDER BY created_at, id LIMIT ${MAX_AGENTS + 1})
    UNION
    SELECT a.id, a.parent_agent_id FROM lineage l
      JOIN agents a ON a.id = l.parent_agent_id AND a.user_id = $userId
  ), bounded AS (SELECT id FROM lineage LIMIT ${2 * MAX_AGENTS})
  SELECT a.id, a.name, a.generation, coalesce(c.specialization, 'general') AS specialization,
         CASE a.desired WHEN 'deleted' THEN 'deleted' ELSE a.status END AS status,
         a.created_at AS "createdAt", a.parent_agent_id AS "parentAgentId"
    FROM bounded b JOIN agents a ON a.id = b.id LEFT JOIN clones c ON c.id = a.id
   ORDER BY a.created_at, a.id`;

/** Returns a user's agents by descent, oldest first. */
export async function colonyTree(tenant: TenantDatabase, userId: string): Promise<ColonyTree> {
  const rows = await tenant.query<AgentRow>(LINEAGE, { userId });
  const ids = new Set(rows.map(({ id }) => id));
  const childrenOf = new Map<string, AgentRow[]>();
  for (const row of rows) {
    const { parentAgentId } = row;
    const parent = parentAgentId !== null && ids.has(parentAgentId) ? parentAgentId : NO_PARENT;
    const siblings = childrenOf.get(parent);
    if (siblings) siblings.push(row);
    else childrenOf.set(parent, [row]);
  }
  let placed = 0;
  let size = 0;
  let generations = 0;
  const grow = (
    { parentAgentId: _parent, status: stored, ...agent }: AgentRow,
    level: number,
  ): ColonyNode[] => {
    if (placed === MAX_AGENTS || level > MAX_GENERATIONS) return [];
    placed += 1;
    const status = stored === 'deleted' ? stored : webStatus(stored);
    if (status !== 'deleted') size += 1;
    generations = Math.max(generations, level);
    const children = (childrenOf.get(agent.id) ?? []).flatMap((child) => grow(child, level + 1));
    return [{ ...agent, status, children }];
  };
  const roots = (childrenOf.get(NO_PARENT) ?? []).flatMap((root) => grow(root, 1));
  return { size, generations, truncated: placed < rows.length, roots };
}
