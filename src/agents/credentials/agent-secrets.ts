import { recordAudit } from '../../platform/audit/audit.js';
import type { Requester } from '../../platform/audit/requester.js';
import { randomBytes } from 'node:crypto';
import type { TenantDatabase, TenantTransaction } from '../../platform/database/database.js';
import { NotFoundError } from '../../lib/errors.js';
import type { SecretBox } from '../../platform/secrets/secret-box.js';
import { tokenHash } from '../../platform/secrets/token-hash.js';

/** `gateway-token` opens the agent's gateway; the agent sends `ai-token` to the platform's AI listener. */
export type AgentSecretKind = 'gateway-token' | 'ai-token';

/** Returns the encryption context that keeps a secret from being moved to another row. */
export function secretContext(agentId: string, kind: AgentSecretKind): string {
  return `agent/${agentId}/${kind}`;
}

/** Stores the tokens of a new agent, 256 random bits each, sealed. */
export async function createAgentSecrets(
  db: TenantTransaction,
  box: SecretBox,
  agent: { readonly id: string; readonly userId: string },
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
  await db.AgentSecret.bulkCreate([secret('gateway-token'), secret('ai-token')]);
}

/** Returns the token that opens the agent's gateway. @throws NotFoundError */
export async function readGatewayToken(
  tenant: TenantDatabase,
  box: SecretBox,
  agentId: string,
): Promise<string> {
  const row = await tenant.transaction((db) =>
    db.AgentSecret.findOne({
      where: { agentId, kind: 'gateway-token' },
    }),
  );
  if (!row) throw new NotFoundError('Agent not found');
  return box.open(row.sealed, secretContext(agentId, 'gateway-token'));
}

/** Returns the gateway token for display, and audits the disclosure. @throws NotFoundError */
export async function discloseGatewayToken(
  { actor, requestId, tenant }: Pick<Requester, 'actor' | 'requestId' | 'tenant'>,
  box: SecretBox,
  agent: { readonly id: string; readonly userId: string },
): Promise<string> {
  const token = await readGatewayToken(tenant, box, agent.id);
  const { id: subject, userId } = agent;
  await recordAudit(tenant, { actor, userId, action: 'agent.token.read', subject, requestId });
  return token;
}

export async function readAgentTokens(
  tenant: TenantDatabase,
  box: SecretBox,
  agentId: string,
): Promise<string[]> {
  const rows = await tenant.transaction((db) => db.AgentSecret.findAll({ where: { agentId } }));
  return rows.map(({ kind, sealed }) => box.open(sealed, secretContext(agentId, kind)));
}
