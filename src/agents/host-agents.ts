import { Op } from 'sequelize';
import type { Database } from '../database/database.js';
import type { AgentRow } from '../database/models.js';
import { isCrashLoop } from './watchdog.js';

/** Rows of one look. */
const PAGE = 200;

/**
 * The agents of a host that should run and have run before, a page at a time. One in a crash loop
 * is left out: it is up to an operator.
 *
 * @param awayFrom Unix milliseconds since when Docker was away: a crash loop from then on was its
 *   doing, and does not count as one.
 */
export async function* agentsToRun(
  database: Database,
  host: string,
  awayFrom = 0,
): AsyncGenerator<AgentRow[]> {
  for (let after = ''; ;) {
    const agents: AgentRow[] = await database.asPlatform().transaction((db) =>
      db.Agent.findAll({
        where: { host, desired: 'running', startedAt: { [Op.ne]: null }, id: { [Op.gt]: after } },
        order: [['id', 'ASC']],
        limit: PAGE,
      }),
    );
    yield agents.filter(({ watchdog }) => !watchdog || !isCrashLoop(watchdog, awayFrom));
    const last = agents.at(-1);
    if (!last || agents.length < PAGE) return;
    after = last.id;
  }
}
