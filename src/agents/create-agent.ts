import { randomUUID } from 'node:crypto';
import { recordAudit } from '../audit/audit.js';
import { violates } from '../database/constraints.js';
import type { TenantDatabase, TenantTransaction } from '../database/database.js';
import type { AgentRow, OperationRow } from '../database/models.js';
import { ConflictError, PaymentRequiredError } from '../errors.js';
import { placeAgent } from '../hosts/place-agent.js';
import type { SecretBox } from '../secrets/secret-box.js';
import { createAgentSecrets } from './agent-secrets.js';

/** Its id is made from the caller's `Idempotency-Key`, so that a repetition finds the first one's. */
export interface NewAgent extends Pick<
  AgentRow,
  'id' | 'userId' | 'name' | 'plan' | 'model' | 'aiProvider' | 'config'
> {
  /**
   * How many agents the owner may have, read in the transaction that makes one more.
   *
   * @throws ServiceError for one that the owner may not have at all.
   */
  readonly limit: (db: TenantTransaction) => Promise<number>;
  /** A host that does not get it, whatever is known of it. */
  readonly notOn?: string | undefined;
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
  try {
    return await tenant.transaction(async (db) => {
      // One creation for an owner after the other, so that two at the cap admit one.
      await db.lock(`agents-of:${agent.userId}`);
      const earlier = await db.Agent.findOne({ where: { id: agent.id, userId: agent.userId } });
      if (earlier) {
        const operation = await db.Operation.findOne({
          where: { agentId: earlier.id, kind: 'provision' },
          order: [['requestedAt', 'ASC']],
        });
        if (!operation) throw new TypeError(`agent ${earlier.id} was made without an operation`);
        return { agent: earlier, operation };
      }
      await checkLimit(db, agent);
      const host = await placeAgent(db, agent.notOn);
      const { limit: _limit, notOn: _notOn, requestId, ...values } = agent;
      const row = await db.Agent.create({ ...values, host, subdomain: subdomainOf(agent) });
      await createAgentSecrets(db, box, row);
      const operation = await db.Operation.create({
        id: randomUUID(),
        agentId: row.id,
        userId: row.userId,
        kind: 'provision',
        requestedBy: row.userId,
        requestId,
      });
      await recordAudit(db, {
        actor: row.userId,
        userId: row.userId,
        action: 'agent.create',
        subject: row.id,
        detail: { name: row.name, plan: row.plan },
        requestId,
      });
      return { agent: row, operation };
    });
  } catch (error) {
    if (violates(error, 'agents_user_name_key')) {
      throw new ConflictError(`An agent named "${agent.name}" exists already`);
    }
    throw error;
  }
}

async function checkLimit(db: TenantTransaction, agent: NewAgent): Promise<void> {
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
    .replace(/^-+|-+$/g, '');
  return `${slug || 'agent'}-${agent.id.replaceAll('-', '').slice(0, 8)}`;
}
