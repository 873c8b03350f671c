import { randomUUID } from 'node:crypto';
import { recordAudit } from '../../platform/audit/audit.js';
import type { Requester } from '../../platform/audit/requester.js';
import { violates } from '../../platform/database/constraints.js';
import type { TenantDatabase, TenantTransaction } from '../../platform/database/database.js';
import type { AgentRow, OperationRow } from '../../platform/database/models.js';
import { ConflictError, PaymentRequiredError } from '../../lib/errors.js';
import { placeAgent } from '../hosts/place-agent.js';
import type { SecretBox } from '../../platform/secrets/secret-box.js';
import { createCredentials } from '../credentials/agent-credentials.js';
import { createAgentSecrets } from '../credentials/agent-secrets.js';

/** A new agent, with an id from the caller's `Idempotency-Key`: a repeated request finds the first agent. */
export interface NewAgent
  extends
    Pick<AgentRow, 'id' | 'userId' | 'name' | 'plan' | 'model' | 'aiProvider' | 'config'>,
    Partial<Pick<AgentRow, 'image' | 'parentAgentId' | 'generation'>> {
  /** Returns the owner's limit of agents. @throws ServiceError for an agent that the owner may not have. */
  readonly limit: (db: TenantTransaction) => Promise<number>;
  readonly notOn?: string | undefined;
  readonly on?: string | undefined;
  /** The requester, if not the owner. */
  readonly actor?: string | undefined;
  /** Values of the agent's first credentials, by name. */
  readonly credentials?: Readonly<Record<string, string>> | undefined;
  readonly requestId: string;
}

/**
 * Stores a new agent with all that its workflow needs in one transaction.
 * @throws PaymentRequiredError `AGENT_LIMIT_REACHED`; ConflictError for a name that the owner has already;
 * UnavailableError, DockerAwayError when no host has room.
 */
export async function createAgent(
  tenant: TenantDatabase,
  box: SecretBox,
  agent: NewAgent,
): Promise<{ agent: AgentRow; operation: OperationRow }> {
  return translateNameConflict(agent, () =>
    tenant.transaction(async (db) => {
      await lockAgentsOf(db, agent.userId);
      const earlier = await db.Agent.findOne({ where: { id: agent.id, userId: agent.userId } });
      if (earlier) {
        const operation = await db.Operation.findOne({
          where: { agentId: earlier.id, kind: 'provision' },
          order: [['requestedAt', 'ASC']],
        });
        if (!operation) throw new TypeError(`agent ${earlier.id} was created without an operation`);
        return { agent: earlier, operation };
      }
      const row = await insertAgent(db, box, agent);
      const { requestId } = agent;
      const operation = await requestProvisioning(db, row, { actor: row.userId, requestId });
      return { agent: row, operation };
    }),
  );
}

/** Serializes an owner's creations, so that two concurrent requests cannot exceed the limit. */
export const lockAgentsOf = (db: TenantTransaction, userId: string): Promise<void> =>
  db.lock(`agents-of:${userId}`);

/**
 * Stores a new agent without an operation; the caller has locked the owner's agents.
 * @throws the errors of `createAgent`, with a name conflict untranslated
 */
export async function insertAgent(
  db: TenantTransaction,
  box: SecretBox,
  agent: NewAgent,
): Promise<AgentRow> {
  await checkLimit(db, agent);
  const { limit: _limit, notOn, on, actor, credentials, requestId, ...values } = agent;
  const host = await placeAgent(db, { notOn, on });
  const row = await db.Agent.create({ ...values, host, subdomain: subdomainOf(agent) });
  await createAgentSecrets(db, box, row);
  if (credentials) await createCredentials(db, box, row, credentials);
  const { id: subject, userId, name, plan, parentAgentId } = row;
  await recordAudit(db, {
    actor: actor ?? userId,
    userId,
    action: 'agent.create',
    subject,
    requestId,
    detail: { name, plan, ...(parentAgentId !== null && { parentAgentId }) },
  });
  return row;
}

/** Stores the provisioning of an agent, which will run from then on, even if late. */
export const requestProvisioning = (
  db: TenantTransaction,
  { id: agentId, userId }: Pick<AgentRow, 'id' | 'userId'>,
  { actor, requestId }: Pick<Requester, 'actor' | 'requestId'>,
): Promise<OperationRow> =>
  db.Operation.create({
    id: randomUUID(),
    agentId,
    userId,
    kind: 'provision',
    requestedBy: actor,
    requestId,
  });

/** Runs an insert. @throws ConflictError when the owner already has an agent of that name. */
export async function translateNameConflict<T>(
  { name }: Pick<NewAgent, 'name'>,
  insert: () => Promise<T>,
): Promise<T> {
  try {
    return await insert();
  } catch (error) {
    if (!violates(error, 'agents_user_name_key')) throw error;
    throw new ConflictError(`An agent named "${name}" exists already`, 'NAME_TAKEN');
  }
}

/**
 * Checks the owner's limit. @throws PaymentRequiredError `AGENT_LIMIT_REACHED`, with `current` and `limit`.
 */
export async function checkLimit(
  db: TenantTransaction,
  agent: Pick<NewAgent, 'userId' | 'limit'>,
): Promise<void> {
  const limit = await agent.limit(db);
  if (limit === Number.POSITIVE_INFINITY) return;
  const current = await db.Agent.count({
    where: { userId: agent.userId, desired: ['running', 'stopped'] },
  });
  if (current >= limit) {
    throw new PaymentRequiredError(
      'Agent limit reached for this plan: remove an agent or upgrade',
      'AGENT_LIMIT_REACHED',
      {
        current,
        limit,
      },
    );
  }
}

/** Returns a host name label: the usable characters of the name and a unique suffix. */
function subdomainOf(agent: NewAgent): string {
  const slug = agent.name
    .normalize('NFKD')
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .slice(0, 40)
    .replace(/^-|-$/g, '');
  return `${slug || 'agent'}-${agent.id.replaceAll('-', '').slice(0, 8)}`;
}
