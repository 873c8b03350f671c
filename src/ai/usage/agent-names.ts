import type { TenantDatabase } from '../../platform/database/database.js';

/** Name shown for calls without an agent. */
const WITHOUT_AGENT = 'API';

const AT_ONCE = 500;

/**
 * Returns the names of agents for reports, also of removed ones; the id '' stands for calls without an agent.
 */
export async function agentNames(
  tenant: TenantDatabase,
  ids: readonly string[],
): Promise<(id: string) => string> {
  const names = new Map([['', WITHOUT_AGENT]]);
  const wanted = ids.filter((id) => id !== '').slice(0, AT_ONCE);
  if (wanted.length > 0) {
    const agents = await tenant.transaction((db) =>
      db.Agent.findAll({
        attributes: ['id', 'name', 'desired'],
        where: { id: wanted },
      }),
    );
    for (const { id, name, desired } of agents) {
      names.set(id, desired === 'deleted' ? `${name} (removed)` : name);
    }
  }
  return (id) => names.get(id) ?? `Agent ${id}`;
}
