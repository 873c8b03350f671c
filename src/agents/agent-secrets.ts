import { randomBytes } from 'node:crypto';
import type { Transaction } from 'sequelize';
import type { TenantDatabase } from '../database/database.js';
import type { Models } from '../database/models.js';
import { NotFoundError } from '../errors.js';
import type { SecretBox } from '../secrets/secret-box.js';
import { tokenHash } from '../secrets/token-hash.js';

/** `gateway-token` opens the agent's gateway; `ai-token` is what the agent shows our AI listener. */
export type AgentSecretKind = 'gateway-token' | 'ai-token';

/** Binds a sealed secret to its agent and kind, so that it cannot be moved to another row. */
export function secretContext(agentId: string, kind: AgentSecretKind): string {
  return `agent/${agentId}/${kind}`;
}

/** Makes the tokens of a new agent, 256 random bits each, and stores them sealed. */
export async function createAgentSecrets(
  models: Models,
  box: SecretBox,
  agent: { readonly id: string; readonly userId: string },
  transaction: Transaction,
): Promise<void> {
  const secret = (kind: AgentSecretKind) => {
    const token = randomBytes(32).toString('base64url');
    return {
      agentId: agent.id,
      userId: agent.userId,
      kind,
      sealed: box.seal(token, secretContext(agent.id, kind)),
      lookupHash: kind === 'ai-token' ? tokenHash(token) : null,
    };
  };
  await models.AgentSecret.bulkCreate([secret('gateway-token'), secret('ai-token')], {
    transaction,
  });
}

/**
 * The token that the agent's gateway asks for.
 *
 * @throws NotFoundError when the agent is no more.
 */
export async function readGatewayToken(
  tenant: TenantDatabase,
  box: SecretBox,
  agentId: string,
): Promise<string> {
  const row = await tenant.transaction((transaction) =>
    tenant.models.AgentSecret.findOne({
      where: { agentId, kind: 'gateway-token' },
      raw: true,
      transaction,
    }),
  );
  if (!row) throw new NotFoundError('Agent not found');
  return box.open(row.sealed, secretContext(agentId, 'gateway-token'));
}

/** Every token of an agent. */
export async function readAgentTokens(
  tenant: TenantDatabase,
  box: SecretBox,
  agentId: string,
): Promise<string[]> {
  const rows = await tenant.transaction((transaction) =>
    tenant.models.AgentSecret.findAll({ where: { agentId }, raw: true, transaction }),
  );
  return rows.map(({ kind, sealed }) => box.open(sealed, secretContext(agentId, kind)));
}
