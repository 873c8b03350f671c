import { Op } from 'sequelize';
import type { TenantDatabase, TenantTransaction } from '../../platform/database/database.js';
import type { AgentCredentialRow } from '../../platform/database/models.js';
import { ConflictError, NotFoundError } from '../../lib/errors.js';
import type { SecretBox } from '../../platform/secrets/secret-box.js';
import { readAgentTokens } from './agent-secrets.js';

/** Credentials that one agent can have. */
export const MAX_CREDENTIALS = 50;

/** What is shorter stands in every other line by chance, and is no secret. */
const SHORTEST_HIDDEN = 4;

/** A change of a credential, as it is stored until its operation begins. */
export interface CredentialChange {
  readonly name: string;
  /** Null takes the credential away. */
  readonly sealed: string | null;
}

/** Seals a value for one agent and one name: it opens for no other. */
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
 * Puts a change down with the operation that is to bring it. Nothing of it is in force before that
 * begins.
 *
 * @throws ConflictError when the agent has as many as it can have
 * @throws NotFoundError when there is nothing to take away
 */
export async function requestCredential(
  db: TenantTransaction,
  agent: { readonly id: string; readonly userId: string },
  operationId: string,
  { name, sealed }: CredentialChange,
): Promise<void> {
  const { AgentCredential } = db;
  const agentId = agent.id;
  // One request for an agent after the other, so that two at the cap admit one.
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
    throw new ConflictError('Credential limit reached: remove one first', facts);
  }
  const state = 'requested';
  await AgentCredential.bulkCreate(
    [{ operationId, agentId, userId: agent.userId, name, sealed, state, updatedAt: new Date() }],
    { ignoreDuplicates: true },
  );
}

/** The operation does not begin: nothing is left of what it was to bring. */
export async function forgetCredential(db: TenantTransaction, operationId: string): Promise<void> {
  await db.AgentCredential.destroy({ where: { operationId, state: 'requested' } });
}

/** The operation begins: what it brings is in force, and what was before is kept until it ends. */
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

/** What was before the operation is in force again. */
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

/** The operation has ended: what nobody goes back to any more is deleted. */
export async function settleCredentials(db: TenantTransaction, agentId: string): Promise<void> {
  const ended = [{ state: 'previous' }, { state: 'present', sealed: null }];
  await db.AgentCredential.destroy({ where: { agentId, [Op.or]: ended } });
}

/** The names of an agent's credentials in order, and since when each is what it is. */
export async function listCredentials(
  tenant: TenantDatabase,
  agentId: string,
): Promise<{ readonly name: string; readonly updatedAt: Date }[]> {
  const rows = await presentCredentials(tenant, agentId);
  return rows.map(({ name, updatedAt }) => ({ name, updatedAt }));
}

/** What the agent's container has in its environment. Pass it on, log none of it. */
export async function readCredentials(
  tenant: TenantDatabase,
  box: SecretBox,
  agentId: string,
): Promise<Record<string, string>> {
  const rows = await presentCredentials(tenant, agentId);
  return Object.fromEntries(rows.map((row) => [row.name, open(box, row)]));
}

/**
 * All that must not show in what an agent wrote, the longest first: its tokens, and every line of its
 * credentials, also of those that are being replaced.
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

/** Binds a sealed value to its agent and name. */
export const credentialContext = (agentId: string, name: string): string =>
  `agent/${agentId}/credential/${name}`;
