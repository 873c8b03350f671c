import type { TenantDatabase } from '../../platform/database/database.js';
import type { OperationRow, WatchdogTransitionRow } from '../../platform/database/models.js';
import type { Page } from './agents.js';

/** A page of an agent's history. */
export interface History {
  readonly operations: readonly OperationRow[];
  readonly transitions: readonly WatchdogTransitionRow[];
  readonly next: Page<unknown>['next'];
}

interface Happened {
  readonly what: 'operation' | 'transition';
  readonly id: string;
  readonly at: Date;
}

/** Times are cut to milliseconds, the precision of a page position. */
const HAPPENED = `
  SELECT 'operation' AS what, id, date_trunc('milliseconds', requested_at) AS at
    FROM operations WHERE agent_id = $agentId
  UNION ALL
  SELECT 'transition', id, date_trunc('milliseconds', at)
    FROM watchdog_transitions WHERE agent_id = $agentId`;

/** Returns the newest `limit` operations and transitions before a position, the previous page's `next`. */
export async function readHistory(
  tenant: TenantDatabase,
  agentId: string,
  page: { readonly limit: number; readonly before?: readonly [string, string] | undefined },
): Promise<History> {
  const [before, beforeId] = page.before ?? [];
  return tenant.transaction(async (db) => {
    const found = await db.query<Happened>(
      `SELECT what, id, at FROM (${HAPPENED}) happened
        ${before === undefined ? '' : 'WHERE (at, id) < ($before::timestamptz, $beforeId)'}
        ORDER BY at DESC, id DESC LIMIT $most`,
      // One row more than requested shows whether a next page exists.
      { agentId, ...(before !== undefined && { before, beforeId }), most: page.limit + 1 },
    );
    const part = found.slice(0, page.limit);
    const last = found.length > page.limit ? part.at(-1) : undefined;
    const idsOf = (kind: Happened['what']) =>
      part.filter(({ what }) => what === kind).map(({ id }) => id);
    return {
      operations: await db.Operation.findAll({
        where: { id: idsOf('operation') },
        order: [
          ['requestedAt', 'DESC'],
          ['id', 'DESC'],
        ],
      }),
      transitions: await db.WatchdogTransition.findAll({
        where: { id: idsOf('transition') },
        order: [
          ['at', 'DESC'],
          ['id', 'DESC'],
        ],
      }),
      next: last && [last.at.toISOString(), last.id],
    };
  });
}
