import { randomUUID } from 'node:crypto';
import type { Transaction } from 'sequelize';
import type { Plan } from '../accounts/plans.js';
import { violates } from '../database/constraints.js';
import type { TenantDatabase } from '../database/database.js';
import type { AgentRow, OperationRow } from '../database/models.js';
import { lockUntilEnd } from '../database/transaction-sql.js';
import { ConflictError, PaymentRequiredError } from '../errors.js';
import { placeAgent } from '../hosts/place-agent.js';
import type { SecretBox } from '../secrets/secret-box.js';
import { createAgentSecrets } from './agent-secrets.js';

export interface NewAgent {
  /** Made from the caller's `Idempotency-Key`, so that a repetition finds the first one's agent. */
  readonly id: string;
  readonly userId: string;
  readonly name: string;
  readonly plan: Plan;
  readonly model: string;
  readonly aiProvider: string;
  readonly config: Record<string, unknown>;
  /** How many agents the owner may have; infinite for administrators. */
  readonly limit: number;
}

/**
 * Puts down a new agent with its name, address, tokens and the operation that provisions it. From
 * here on it cannot be lost: whoever starts its workflow, and however late, finds all of it.
 *
 * @throws PaymentRequiredError `AGENT_LIMIT_REACHED`, with `current` and `limit`
 * @throws ConflictError when the owner has an agent of that name
 * @throws UnavailableError when no host can take it
 */
export async function createAgent(
  tenant: TenantDatabase,
  box: SecretBox,
  agent: NewAgent,
): Promise<{ agent: AgentRow; operation: OperationRow }> {
  const { Agent, Operation } = tenant.models;
  try {
    return await tenant.transaction(async (transaction) => {
      // One creation for an owner after the other, so that two at the cap admit one.
      await lockUntilEnd(transaction, `agents-of:${agent.userId}`);
      const earlier = await Agent.findOne({
        where: { id: agent.id, userId: agent.userId },
        transaction,
      });
      if (earlier) {
        const operation = await Operation.findOne({
          where: { agentId: earlier.id, kind: 'provision' },
          order: [['requestedAt', 'ASC']],
          rejectOnEmpty: true,
          transaction,
        });
        return { agent: earlier, operation };
      }
      await checkLimit(tenant, agent, transaction);
      const host = await placeAgent(transaction);
      const { limit: _limit, ...values } = agent;
      const row = await Agent.create(
        { ...EMPTY, ...values, host, subdomain: subdomainOf(agent) },
        { transaction },
      );
      await createAgentSecrets(tenant.models, box, row, transaction);
      const operation = await Operation.create(
        {
          id: randomUUID(),
          agentId: row.id,
          userId: row.userId,
          kind: 'provision',
          input: null,
          error: null,
          runId: null,
          requestedAt: new Date(),
          finishedAt: null,
        },
        { transaction },
      );
      return { agent: row, operation };
    });
  } catch (error) {
    if (violates(error, 'agents_user_name_key')) {
      throw new ConflictError(`An agent named "${agent.name}" exists already`);
    }
    throw error;
  }
}

async function checkLimit(
  tenant: TenantDatabase,
  agent: NewAgent,
  transaction: Transaction,
): Promise<void> {
  if (agent.limit === Number.POSITIVE_INFINITY) return;
  const current = await tenant.models.Agent.count({
    where: { userId: agent.userId, desired: ['running', 'stopped'] },
    transaction,
  });
  if (current >= agent.limit) {
    throw new PaymentRequiredError('Agent limit reached for this plan', 'AGENT_LIMIT_REACHED', {
      current,
      limit: agent.limit,
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

const EMPTY = {
  statusReason: null,
  observedAt: null,
  startedAt: null,
  port: null,
  image: null,
  runtimeVersion: null,
  containerId: null,
  parentAgentId: null,
  verificationType: null,
  attestationUid: null,
  verifiedAt: null,
  deletedAt: null,
} as const;
