import { literal, Op, type WhereOptions } from 'sequelize';
import type { Database } from '../../platform/database/database.js';
import type { AgentRow } from '../../platform/database/models.js';
import { isCrashLoop } from '../../types/watchdog.js';

const PAGE = 200;

const UNDER_WAY = '(SELECT agent_id FROM operations WHERE finished_at IS NULL)';

/**
 * Yields the agents that should run and have run before, except those in a crash loop, which need an
 * operator. A crash loop later than `awayFrom`, in Unix milliseconds, was caused by Docker's absence.
 */
export async function* agentsToRun(
  database: Database,
  host: string,
  awayFrom = 0,
): AsyncGenerator<AgentRow[]> {
  const where = { host, desired: 'running', startedAt: { [Op.ne]: null } } as const;
  for await (const agents of pages(database, where)) {
    yield agents.filter(({ watchdog }) => !watchdog || !isCrashLoop(watchdog, awayFrom));
  }
}

export function agentsNeverRun(database: Database, host: string): AsyncGenerator<AgentRow[]> {
  return pages(database, { host, desired: { [Op.ne]: 'deleted' }, startedAt: null });
}

export function agentsNotKnownStopped(
  database: Database,
  host: string,
): AsyncGenerator<AgentRow[]> {
  const hasRun = { startedAt: { [Op.ne]: null } };
  const isUnstopped = { watchdog: { state: { [Op.ne]: 'stopped' } } };
  return pages(database, { host, desired: 'stopped', ...hasRun, ...isUnstopped });
}

/**
 * Returns the agents with a supervisor. One that never ran or is being removed has a supervisor only for its
 * operations; if stuck, that supervisor keeps them from ending.
 */
export function supervisedAgents(database: Database, host: string): AsyncGenerator<AgentRow[]> {
  const hasRun = { desired: ['running', 'stopped'], startedAt: { [Op.ne]: null } };
  const isBusy = { id: { [Op.in]: literal(UNDER_WAY) } };
  return pages(database, { host, deletedAt: null, [Op.or]: [hasRun, isBusy] });
}

/** Returns the ids of those agents that have an open operation. */
export async function busyAgents(
  database: Database,
  agentIds: readonly string[],
): Promise<ReadonlySet<string>> {
  const open = await database.asPlatform().transaction((db) =>
    db.Operation.findAll({
      where: { agentId: [...agentIds], finishedAt: null },
      attributes: ['agentId'],
    }),
  );
  return new Set(open.map(({ agentId }) => agentId));
}

async function* pages(
  database: Database,
  where: WhereOptions<AgentRow>,
): AsyncGenerator<AgentRow[]> {
  for (let after = ''; ;) {
    const agents: AgentRow[] = await database.asPlatform().transaction((db) =>
      db.Agent.findAll({
        where: { [Op.and]: [where, { id: { [Op.gt]: after } }] },
        order: [['id', 'ASC']],
        limit: PAGE,
      }),
    );
    if (agents.length > 0) yield agents;
    const last = agents.at(-1);
    if (!last || agents.length < PAGE) return;
    after = last.id;
  }
}
