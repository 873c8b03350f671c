import type { AgentRow } from '../../platform/database/models.js';
import type { TenantTransaction } from '../../platform/database/database.js';
import { markDeleted } from '../operations/delete-agent.js';

/** Marks a host's agents as lost: they can only be removed. Completes removals in progress. */
export async function markAgentsLost(
  db: TenantTransaction,
  by: { readonly actor: string; readonly requestId: string },
  host: string,
): Promise<void> {
  const reason = `Its host ${host} was removed, and its memory is lost with it`;
  const removals = await db.query<Pick<AgentRow, 'id'>>(
    `WITH ended AS (
       UPDATE operations o SET status = 'succeeded', finished_at = now()
         FROM agents a
        WHERE a.host = $host AND a.desired = 'deleted' AND a.deleted_at IS NULL
          AND o.agent_id = a.id AND o.kind = 'delete' AND o.finished_at IS NULL)
     SELECT id FROM agents WHERE host = $host AND desired = 'deleted' AND deleted_at IS NULL`,
    { host },
  );
  for (const { id } of removals) await markDeleted(db, id, '', new Date());

  const lost = `agent_id IN (SELECT id FROM agents WHERE host = $host AND deleted_at IS NULL)`;
  await db.query(
    `UPDATE operations SET status = 'failed', error = $reason, finished_at = now()
      WHERE finished_at IS NULL AND ${lost}`,
    { host, reason },
  );
  await db.query(`DELETE FROM agent_archives WHERE ${lost}`, { host });
  // Credentials that were never applied, and previous ones kept for a rollback.
  await db.query(`DELETE FROM agent_credentials WHERE state <> 'present' AND ${lost}`, { host });
  await db.query(`DELETE FROM agent_skills WHERE state <> 'present' AND ${lost}`, { host });
  await db.query(
    `WITH lost AS (
       UPDATE agents SET desired = 'stopped', status = 'error', status_reason = $reason,
              previous_release = NULL, observed_at = now(), updated_at = now(),
              watchdog = jsonb_build_object('state', 'stopped', 'crashes', '[]'::jsonb,
                'repairAttempts', 0, 'lastRepair', NULL,
                'since', floor(extract(epoch FROM now()) * 1000))
        WHERE host = $host AND deleted_at IS NULL
        RETURNING id, user_id)
     INSERT INTO audit_log (actor, user_id, action, subject, detail, request_id)
     SELECT $actor, user_id, 'agent.lost', id, jsonb_build_object('host', $host::text), $requestId
       FROM lost`,
    { host, reason, actor: by.actor, requestId: by.requestId },
  );
}
