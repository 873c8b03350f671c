import type { TenantDatabase } from '../../platform/database/database.js';

/**
 * Whether an agent is a clone that is not paid for yet: until then nothing but its removal is done to it.
 */
export async function isUnpaidClone(tenant: TenantDatabase, agentId: string): Promise<boolean> {
  const unpaid = await tenant.query('SELECT FROM clones WHERE id = $agentId AND paid_at IS NULL', {
    agentId,
  });
  return unpaid.length > 0;
}
