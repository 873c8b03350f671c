import pLimit from 'p-limit';
import type { Logger } from 'pino';
import { Op } from 'sequelize';
import { operationRules } from '../src/agents/operation-kinds.js';
import { supervisedOf, type AgentSupervisors } from '../src/agents/supervisors.js';
import { withdrawOperation } from '../src/agents/operations.js';
import type { Database } from '../src/database/database.js';
import type { AgentRow, OperationRow } from '../src/database/models.js';

/** How often to look for requests that nobody carried to Temporal. */
const INTERVAL_MS = 15_000;

/** A request that is older than this was not carried on by whoever wrote it down. */
const ABANDONED_MS = 15_000;

/** Requests of one pass; the rest waits for the next. */
const MAX_AT_ONCE = 200;

/** Calls to Temporal at a time. */
const limit = pLimit(20);

interface RecoverDependencies {
  readonly database: Database;
  readonly supervisors: AgentSupervisors;
  readonly log: Logger;
}

/**
 * What the API has written down and could not hand to Temporal, because one of them was
 * killed or out of reach: provisionings and removals are handed over, other requests that no
 * supervisor has, and whose askers were told that they failed, are taken back.
 */
export async function recoverRequests({
  database,
  supervisors,
  log,
}: RecoverDependencies): Promise<void> {
  const abandoned = await database.asPlatform().transaction((db) =>
    db.Operation.findAll({
      where: {
        status: 'requested',
        requestedAt: { [Op.lt]: new Date(Date.now() - ABANDONED_MS) },
      },
      order: [['requestedAt', 'ASC']],
      limit: MAX_AT_ONCE,
    }),
  );
  await Promise.all(abandoned.map((operation) => limit(recover, operation)));

  /** Its asker may have been told that it is accepted; a supervisor without a worker is late. */
  async function isTaken({ id, requestedAt }: OperationRow, agent: AgentRow): Promise<boolean> {
    if (agent.desired === 'deleted') return false;
    return supervisors.knows(supervisedOf(agent), id, requestedAt);
  }

  async function recover(operation: OperationRow): Promise<void> {
    const tenant = database.asUser(operation.userId);
    const agent = await tenant.transaction((db) => db.Agent.findByPk(operation.agentId));
    if (!agent) return;
    log.info({ agentId: agent.id, operation: operation.kind }, 'taking up a request');
    if (operation.kind === 'provision') {
      await supervisors.provision(supervisedOf(agent), operation.id);
    } else if (operationRules(operation.kind).refused === 'kept') {
      const { id, kind, requestedAt } = operation;
      await supervisors.request(supervisedOf(agent), kind, id, requestedAt);
    } else if (await isTaken(operation, agent)) {
      log.info({ agentId: agent.id, operation: operation.kind }, 'its supervisor has it');
    } else {
      await withdrawOperation(tenant, operation.id);
    }
  }
}

/** Does so now, and again and again until the signal aborts. */
export function recoverPeriodically(dependencies: RecoverDependencies, signal: AbortSignal): void {
  const attempt = async () => {
    try {
      await recoverRequests(dependencies);
    } catch (error) {
      dependencies.log.warn({ err: error }, 'recovery did not succeed, and is tried again');
    }
  };
  void attempt();
  const timer = setInterval(() => void attempt(), INTERVAL_MS);
  signal.addEventListener('abort', () => clearInterval(timer), { once: true });
}
