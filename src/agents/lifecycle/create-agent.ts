import { randomUUID } from 'node:crypto';
import { recordAudit } from '../../platform/audit/audit.js';
import type { Requester } from '../../platform/audit/requester.js';
import { violates } from '../../platform/database/constraints.js';
import type { TenantDatabase, TenantTransaction } from '../../platform/database/database.js';
import type { AgentRow, OperationRow } from '../../platform/database/models.js';
import { ConflictError, PaymentRequiredError } from '../../lib/errors.js';
import { placeAgent } from '../hosts/place-agent.js';
import type { SecretBox } from '../../platform/secrets/secret-box.js';
import { createAgentSecrets } from '../credentials/agent-secrets.js';

/** Its id is made from the caller's `Idempotency-Key`, so that a repetition finds the first one's. */
export interface NewAgent
  extends
    Pick<AgentRow, 'id' | 'userId' | 'name' | 'plan' | 'model' | 'aiProvider' | 'config'>,
    Partial<Pick<AgentRow, 'image' | 'parentAgentId' | 'generation'>> {
  /**
   * How many agents the owner may have, read in the transaction that makes one more.
   *
   * @throws ServiceError for one that the owner may not have at all.
   */
  readonly limit: (db: TenantTransaction) => Promise<number>;
  /** A host that does not get it, whatever is known of it. */
  readonly notOn?: string | undefined;
  /** The one host that it may be on. */
  readonly on?: string | undefined;
  /** Who asks for it, where that is not its owner. */
  readonly actor?: string | undefined;
  /** The request that asks for it. */
  readonly requestId: string;
}

/**
 * Puts down a new agent with its name, address, tokens, the operation that provisions it and who
 * asked for it, in one transaction. From here on it cannot be lost: whoever starts its workflow, and
 * however late, finds all of it.
 *
 * @throws PaymentRequiredError `AGENT_LIMIT_REACHED`, with `current` and `limit`
 * @throws ConflictError when the owner has an agent of that name
 * @throws UnavailableError, DockerAwayError when no host can take it
 */
export async function createAgent(
  tenant: TenantDatabase,
  box: SecretBox,
  agent: NewAgent,
): Promise<{ agent: AgentRow; operation: OperationRow }> {
  return withItsName(agent, () =>
    tenant.transaction(async (db) => {
      await lockAgentsOf(db, agent.userId);
      const earlier = await db.Agent.findOne({ where: { id: agent.id, userId: agent.userId } });
      if (earlier) {
        const operation = await db.Operation.findOne({
          where: { agentId: earlier.id, kind: 'provision' },
          order: [['requestedAt', 'ASC']],
        });
        if (!operation) throw new TypeError(`agent ${earlier.id} was made without an operation`);
        return { agent: earlier, operation };
      }
      const row = await insertAgent(db, box, agent);
      const { requestId } = agent;
      const operation = await requestProvisioning(db, row, { actor: row.userId, requestId });
      return { agent: row, operation };
    }),
  );
}

/** Lets one creation for an owner follow the other, so that two at the cap admit one. */
export const lockAgentsOf = (db: TenantTransaction, userId: string): Promise<void> =>
  db.lock(`agents-of:${userId}`);

/**
 * Puts down a new agent with its name, address, tokens and who asked for it: all but what is to be done
 * with it. The owner's agents are locked.
 *
 * @throws as `createAgent`, but for the name: that is for `withItsName` to tell.
 */
export async function insertAgent(
  db: TenantTransaction,
  box: SecretBox,
  agent: NewAgent,
): Promise<AgentRow> {
  await checkLimit(db, agent);
  const { limit: _limit, notOn, on, actor, requestId, ...values } = agent;
  const host = await placeAgent(db, { notOn, on });
  const row = await db.Agent.create({ ...values, host, subdomain: subdomainOf(agent) });
  await createAgentSecrets(db, box, row);
  const { id: subject, userId, name, plan, parentAgentId } = row;
  await recordAudit(db, {
    ...{ actor: actor ?? userId, userId, action: 'agent.create', subject, requestId },
    detail: { name, plan, ...(parentAgentId !== null && { parentAgentId }) },
  });
  return row;
}

/** Puts down that an agent is to be provisioned: from here on it is, however late. */
export const requestProvisioning = (
  db: TenantTransaction,
  { id: agentId, userId }: Pick<AgentRow, 'id' | 'userId'>,
  { actor, requestId }: Pick<Requester, 'actor' | 'requestId'>,
): Promise<OperationRow> =>
  db.Operation.create({
    ...{ id: randomUUID(), agentId, userId, kind: 'provision', requestedBy: actor, requestId },
  });

/** @throws ConflictError when the owner has an agent of that name. */
export async function withItsName<T>(
  { name }: Pick<NewAgent, 'name'>,
  insert: () => Promise<T>,
): Promise<T> {
  try {
    return await insert();
  } catch (error) {
    if (!violates(error, 'agents_user_name_key')) throw error;
    throw new ConflictError(`An agent named "${name}" exists already`);
  }
}

/** @throws PaymentRequiredError `AGENT_LIMIT_REACHED`, with `current` and `limit`. */
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
    throw new PaymentRequiredError('Agent limit reached for this plan', 'AGENT_LIMIT_REACHED', {
      current,
      limit,
    });
  }
}

/** A host name label: what can be kept of the name, and what makes it one of its kind. */
function subdomainOf(agent: NewAgent): string {
  const slug = agent.name
    .normalize('NFKD')
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .slice(0, 40)
    .replace(/^-|-$/g, '');
  return `${slug || 'agent'}-${agent.id.replaceAll('-', '').slice(0, 8)}`;
}
