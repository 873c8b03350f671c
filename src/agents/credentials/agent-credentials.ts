import { Op } from 'sequelize';
import type { TenantDatabase, TenantTransaction } from '../../platform/database/database.js';
import type { AgentCredentialRow } from '../../platform/database/models.js';
import { ConflictError, NotFoundError } from '../../lib/errors.js';
import { deterministicUuid } from '../../lib/uuid-of.js';
import type { SecretBox } from '../../platform/secrets/secret-box.js';
import { readAgentTokens } from './agent-secrets.js';

export const MAX_CREDENTIALS = 50;

/** Shorter values are not redacted: they occur in other text by chance. */
const SHORTEST_HIDDEN = 4;

export interface CredentialChange {
  readonly name: string;
  /** Null removes the credential. */
  readonly sealed: string | null;
}

/** Seals a value for one agent and name; the result cannot be opened for any other. */
export function sealCredential(
  box: SecretBox,
  agentId: string,
  { name, value }: { readonly name: string; readonly value: string | null },
): CredentialChange {
  return {
    name,
    sealed: value === null ? null : box.seal(value, credentialContext(agentId, name)),
  };
}

/**
 * Stores a change, which takes effect when its operation begins.
 * @throws ConflictError at the credential limit; NotFoundError for the removal of a missing credential
 */
export async function requestCredential(
  db: TenantTransaction,
  agent: { readonly id: string; readonly userId: string },
  operationId: string,
  { name, sealed }: CredentialChange,
): Promise<void> {
  const { AgentCredential } = db;
  const agentId = agent.id;
  // Serializes an agent's requests, so that two concurrent ones cannot exceed the limit.
  await db.lock(`agent-credentials:${agentId}`);
  const rows = await AgentCredential.findAll({
    attributes: ['operationId', 'name', 'state'],
    where: { agentId, sealed: { [Op.ne]: null } },
  });
  if (rows.some((row) => row.operationId === operationId)) return;
  const names = new Set(rows.map((row) => row.name));
  if (sealed === null && !names.has(name)) throw new NotFoundError('Credential not found');
  if (sealed !== null && !names.has(name) && names.size >= MAX_CREDENTIALS) {
    const facts = { current: names.size, limit: MAX_CREDENTIALS };
    throw new ConflictError(
      'Credential limit reached: remove one first',
      'CREDENTIAL_LIMIT_REACHED',
      facts,
    );
  }
  const state = 'requested';
  await AgentCredential.bulkCreate(
    [{ operationId, agentId, userId: agent.userId, name, sealed, state, updatedAt: new Date() }],
    { ignoreDuplicates: true },
  );
}

/** Stores the credentials of a new agent, as the first version of each. */
export async function createCredentials(
  db: TenantTransaction,
  box: SecretBox,
  agent: { readonly id: string; readonly userId: string },
  values: Readonly<Record<string, string>>,
): Promise<void> {
  const { id: agentId, userId } = agent;
  const rows = Object.entries(values).map(([name, value]) => ({
    // The version's id; no operation has it, since none can undo it.
    operationId: deterministicUuid([agentId, name]),
    agentId,
    userId,
    ...sealCredential(box, agentId, { name, value }),
    state: 'present' as const,
    updatedAt: new Date(),
  }));
  if (rows.length > 0) await db.AgentCredential.bulkCreate(rows);
}

export async function forgetCredential(db: TenantTransaction, operationId: string): Promise<void> {
  await db.AgentCredential.destroy({ where: { operationId, state: 'requested' } });
}

/** Applies the change of an operation that begins, keeping the previous value until it ends. */
export async function beginCredential(db: TenantTransaction, operationId: string): Promise<void> {
  const { AgentCredential } = db;
  const where = { operationId, state: 'requested' };
  const requested = await AgentCredential.findOne({ where });
  if (!requested) return;
  const { agentId, name } = requested;
  await AgentCredential.update(
    { state: 'previous' },
    { where: { agentId, name, state: 'present' } },
  );
  await AgentCredential.update({ state: 'present', updatedAt: new Date() }, { where });
}

export async function rollBackCredential(
  db: TenantTransaction,
  operationId: string,
): Promise<void> {
  const { AgentCredential } = db;
  const where = { operationId, state: 'present' };
  const failed = await AgentCredential.findOne({ where });
  if (!failed) return;
  const { agentId, name } = failed;
  await AgentCredential.destroy({ where });
  await AgentCredential.update(
    { state: 'present' },
    { where: { agentId, name, state: 'previous' } },
  );
}

/** Deletes previous values, and removed credentials, once no rollback can need them. */
export async function settleCredentials(db: TenantTransaction, agentId: string): Promise<void> {
  const ended = [{ state: 'previous' }, { state: 'present', sealed: null }];
  await db.AgentCredential.destroy({ where: { agentId, [Op.or]: ended } });
}

export async function listCredentials(
  tenant: TenantDatabase,
  agentId: string,
): Promise<{ readonly name: string; readonly updatedAt: Date }[]> {
  const rows = await presentCredentials(tenant, agentId);
  return rows.map(({ name, updatedAt }) => ({ name, updatedAt }));
}

/** Returns the names of the agent's credentials. */
export async function credentialNames(
  tenant: TenantDatabase,
  agentId: string,
): Promise<ReadonlySet<string>> {
  const rows = await tenant.query<{ name: string }>(
    `SELECT name FROM agent_credentials
      WHERE agent_id = $agentId AND state = 'present' AND sealed IS NOT NULL`,
    { agentId },
  );
  return new Set(rows.map(({ name }) => name));
}

/** Returns the environment variables of the agent's container. Secret: never log them. */
export async function readCredentials(
  tenant: TenantDatabase,
  box: SecretBox,
  agentId: string,
): Promise<Record<string, string>> {
  const rows = await presentCredentials(tenant, agentId);
  return Object.fromEntries(rows.map((row) => [row.name, open(box, row)]));
}

/**
 * Returns the secrets to redact from an agent's output, longest first: its tokens and every line of its
 * credentials, including values being replaced.
 */
export async function secretsToRedact(
  tenant: TenantDatabase,
  box: SecretBox,
  agentId: string,
): Promise<string[]> {
  const tokens = await readAgentTokens(tenant, box, agentId);
  const where = { agentId, sealed: { [Op.ne]: null } };
  const rows = await tenant.transaction((db) => db.AgentCredential.findAll({ where }));
  const lines = rows
    .flatMap((row) => open(box, row).split(/\r?\n/))
    .map((line) => line.trim())
    .filter((line) => line.length >= SHORTEST_HIDDEN);
  return [...tokens, ...lines].sort((a, b) => b.length - a.length);
}

function presentCredentials(
  tenant: TenantDatabase,
  agentId: string,
): Promise<AgentCredentialRow[]> {
  return tenant.transaction((db) =>
    db.AgentCredential.findAll({
      where: { agentId, state: 'present', sealed: { [Op.ne]: null } },
      order: [['name', 'ASC']],
    }),
  );
}

function open(box: SecretBox, { agentId, name, sealed }: AgentCredentialRow): string {
  return box.open(sealed ?? '', credentialContext(agentId, name));
}

/** Returns the encryption context that binds a value to its agent and name. */
export const credentialContext = (agentId: string, name: string): string =>
  `agent/${agentId}/credential/${name}`;
