import { createHash, randomBytes } from 'node:crypto';
import type { Transaction } from 'sequelize';
import type { Models } from '../database/models.js';
import type { SecretBox } from '../secrets/secret-box.js';

/** `gateway-token` opens the agent's gateway; `ai-token` is what the agent shows our AI listener. */
export type AgentSecretKind = 'gateway-token' | 'ai-token';

/** Binds a sealed secret to its agent and kind, so that it cannot be moved to another row. */
export function secretContext(agentId: string, kind: AgentSecretKind): string {
  return `agent/${agentId}/${kind}`;
}

/** By which an AI token is found without being stored. */
export function tokenHash(token: string): string {
  return createHash('sha256').update(token).digest('hex');
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
  await models.AgentSecret.bulkCreate([secret('gateway-token'), secret('ai-token')], { transaction });
}
