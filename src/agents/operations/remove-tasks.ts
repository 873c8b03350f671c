import type { Statements } from '../../platform/database/database.js';

/** Marks the scheduled tasks of an agent or of a user as removed; each row stays until its schedule is removed. */
export async function removeTasks(
  db: Pick<Statements, 'query'>,
  owner: { readonly agentId: string } | { readonly userId: string },
): Promise<void> {
  const [column, id] = 'agentId' in owner ? ['agent_id', owner.agentId] : ['user_id', owner.userId];
  await db.query(
    `UPDATE scheduled_tasks
        SET removed_at = now(), scheduled = false,
            set_at = greatest(date_trunc('milliseconds', now()), set_at + interval '1 ms')
      WHERE ${column} = $id AND removed_at IS NULL`,
    { id },
  );
}
