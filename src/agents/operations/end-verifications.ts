import type { Statements } from '../../platform/database/database.js';

/**
 * Ends verifications of an agent in the caller's transaction: unfinished ones, whose measurement would mix two
 * states of the agent, or all, for a change after which the result no longer holds.
 */
export async function endVerifications(
  db: Statements,
  agentId: string,
  which: 'open' | 'all',
): Promise<void> {
  await lockAgent(db, agentId);
  await db.query(
    `UPDATE agent_verifications
        SET state = CASE state WHEN 'current' THEN 'past' ELSE 'cancelled' END
      WHERE agent_id = $agentId AND state = ANY ($states)`,
    { agentId, states: ['measuring', 'signing', ...(which === 'all' ? ['current'] : [])] },
  );
  if (which === 'open') return;
  await db.query(
    `UPDATE agents SET verified = false, verification_type = NULL, attestation_uid = NULL,
            verified_at = NULL
      WHERE id = $agentId AND verification_type IS NOT NULL`,
    { agentId },
  );
}

/** Locks the agent's row, before rows of its verifications: all that change both do so in this order. */
export async function lockAgent(db: Statements, agentId: string): Promise<void> {
  await db.query('SELECT FROM agents WHERE id = $agentId FOR NO KEY UPDATE', { agentId });
}
