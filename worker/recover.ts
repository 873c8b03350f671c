import { Op } from 'sequelize';
import type { Logger } from 'pino';
import type { Supervisors } from '../api/temporal/supervisors.js';
import { supervisedOf } from '../api/temporal/supervised.js';
import type { Database } from '../src/database/database.js';
import type { AgentRow, OperationRow } from '../src/database/models.js';

/** How often to look for requests that nobody carried to the workflow engine. */
const INTERVAL_MS = 15_000;

/** A request that is older than this was not carried on by whoever wrote it down. */
const ABANDONED_MS = 15_000;

/** Rows of one look, and calls to the workflow engine at a time. */
const PAGE = 200;
const CONCURRENCY = 20;

interface RecoverDependencies {
  readonly database: Database;
  readonly supervisors: Supervisors;
  readonly log: Logger;
}

/**
 * What the API has written down and could not hand to the workflow engine, because one of them was
 * killed or out of reach: provisionings and removals are handed over, other requests, whose askers
 * were told that they failed, are taken back.
 */
export async function recoverRequests({
  database,
  supervisors,
  log,
}: RecoverDependencies): Promise<void> {
  const abandoned = await database.asPlatform().transaction((transaction) =>
    database.models.Operation.findAll({
      where: {
        status: 'requested',
        requestedAt: { [Op.lt]: new Date(Date.now() - ABANDONED_MS) },
      },
      order: [['requestedAt', 'ASC']],
      limit: PAGE,
      raw: true,
      transaction,
    }),
  );
  await inTurns(abandoned, (operation) => recover(operation));

  async function recover(operation: OperationRow): Promise<void> {
    const tenant = database.asUser(operation.userId);
    const agent = await tenant.transaction((transaction) =>
      database.models.Agent.findByPk(operation.agentId, { raw: true, transaction }),
    );
    if (!agent) return;
    log.info({ agentId: agent.id, operation: operation.kind }, 'taking up a request');
    if (operation.kind === 'provision') {
      await supervisors.provision(supervisedOf(agent), operation.id);
    } else if (operation.kind === 'delete') {
      await supervisors.request(supervisedOf(agent), 'delete', operation.id);
    } else {
      await tenant.transaction((transaction) =>
        database.models.Operation.destroy({
          where: { id: operation.id, status: 'requested' },
          transaction,
        }),
      );
    }
  }
}

/**
 * Lets the supervisor of every agent that should run look at its container now: after a restart of
 * the host none of them runs, and the next check may be minutes away.
 */
export async function wakeSupervisors({
  database,
  supervisors,
}: RecoverDependencies): Promise<void> {
  for (let after = ''; ;) {
    const agents: AgentRow[] = await database.asPlatform().transaction((transaction) =>
      database.models.Agent.findAll({
        where: { desired: 'running', startedAt: { [Op.ne]: null }, id: { [Op.gt]: after } },
        order: [['id', 'ASC']],
        limit: PAGE,
        raw: true,
        transaction,
      }),
    );
    await inTurns(agents, (agent) => supervisors.checkNow(supervisedOf(agent)));
    const last = agents.at(-1);
    if (!last || agents.length < PAGE) return;
    after = last.id;
  }
}

/** Does both of the above now, and the first again and again until the signal aborts. */
export function keepRecovering(dependencies: RecoverDependencies, signal: AbortSignal): void {
  const attempt = async (work: () => Promise<void>) => {
    try {
      await work();
    } catch (error) {
      dependencies.log.warn({ err: error }, 'recovery did not succeed, and is tried again');
    }
  };
  void attempt(() => wakeSupervisors(dependencies));
  void attempt(() => recoverRequests(dependencies));
  const timer = setInterval(() => void attempt(() => recoverRequests(dependencies)), INTERVAL_MS);
  signal.addEventListener('abort', () => clearInterval(timer), { once: true });
}

async function inTurns<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  for (let start = 0; start < items.length; start += CONCURRENCY) {
    await Promise.all(items.slice(start, start + CONCURRENCY).map(work));
  }
}
