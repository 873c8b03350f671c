import { Op, type WhereOptions } from 'sequelize';
import type { Database } from '../database/database.js';
import type { AgentRow } from '../database/models.js';

/** Rows of one look. */
const PAGE = 200;

/**
 * The agents of a host that should run and have run before, a page at a time. One in a crash loop
 * is left out: it is up to an operator.
 */
export async function* agentsToRun(database: Database, host: string): AsyncGenerator<AgentRow[]> {
  const where = { host, desired: 'running' as const, startedAt: { [Op.ne]: null } };
  for await (const page of pagesOf(database, where)) {
    yield page.filter(({ watchdog }) => watchdog?.state !== 'crash_loop');
  }
}

async function* pagesOf(
  database: Database,
  where: WhereOptions<AgentRow>,
): AsyncGenerator<AgentRow[]> {
  const { Agent } = database.models;
  for (let after = ''; ;) {
    const agents: AgentRow[] = await database.asPlatform().transaction((transaction) =>
      Agent.findAll({
        where: { [Op.and]: [where, { id: { [Op.gt]: after } }] },
        order: [['id', 'ASC']],
        limit: PAGE,
        raw: true,
        transaction,
      }),
    );
    yield agents;
    const last = agents.at(-1);
    if (!last || agents.length < PAGE) return;
    after = last.id;
  }
}
