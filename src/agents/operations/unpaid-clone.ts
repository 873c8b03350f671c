import type { TenantDatabase } from '../../platform/database/database.js';

/** Reports whether an agent is a clone without a final payment; until then it may only be removed. */
export async function isUnpaidClone(tenant: TenantDatabase, agentId: string): Promise<boolean> {
  const unpaid = await tenant.query('SELECT FROM clones WHERE id = $agentId AND paid_at IS NULL', {
    agentId,
  });
  return unpaid.length > 0;
}
