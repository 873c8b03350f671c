import type { Logger } from 'pino';
import { operationRules } from '../src/types/operation-kinds.js';
import {
  endOperations,
  failAdmitted,
  withdrawOperation,
} from '../src/agents/operations/operations.js';
import type { ReleaseStore } from '../src/agents/operations/release-store.js';
import type { OperationStore } from '../src/agents/operations/operation-store.js';
import { supervisedOf, type AgentSupervisors } from '../src/agents/operations/supervisors.js';
import { AGENT_IS_GONE } from '../src/agents/operations/delete-agent.js';
import type { Database } from '../src/platform/database/database.js';
import type { OperationRow } from '../src/platform/database/models.js';
import { selectFrom } from '../src/platform/database/schema/table.js';
import { Operation } from '../src/platform/database/tables/agents.js';
import { UnavailableError } from '../src/lib/errors.js';
import { FairLimiter } from '../src/lib/fair-limiter.js';
import { periodically } from '../src/platform/process/periodically.js';

const INTERVAL_MS = 15_000;

/** Seconds after which a request counts as abandoned by the process that stored it. */
const ABANDONED_SECONDS = 15;

/** Seconds between two checks that a running operation is still in progress. */
const RUNNING_SECONDS = 60;

/** Maximum number of operations in a batch; the next batch follows when all of them are settled. */
const MAX_AT_ONCE = 200;

/** Concurrent calls to Temporal. */
const limiter = new FairLimiter({ atOnce: 20, perOwner: 20 });

export const SUPERVISOR_ENDED =
  'Its supervisor ended before the operation was finished; the agent stays in its last state';

export const NEVER_BEGUN =
  'Its supervisor ended before the operation began; the agent is unchanged';

export interface RecoverDependencies {
  readonly database: Database;
  readonly supervisors: AgentSupervisors;
  readonly services: {
    readonly operationStore: OperationStore;
    readonly releases: ReleaseStore;
  };
  readonly log: Logger;
}

/**
 * Settles open operations that may be abandoned: sends provisionings and removals to Temporal, withdraws
 * other requests that no supervisor has, and marks admitted or running operations of a closed run as failed.
 */
export async function recoverOperations(
  { database, supervisors, services, log }: RecoverDependencies,
  signal?: AbortSignal,
): Promise<void> {
  await resumeRemovals(database);
  for (;;) {
    const open = await claim(database);
    await Promise.all(
      open.map((operation) => limiter.run({ owner: operation.userId }, () => attempt(operation))),
    );
    if (open.length < MAX_AT_ONCE) return;
  }

  async function attempt(operation: OperationRow): Promise<void> {
    if (signal?.aborted) return;
    const { id, agentId, kind } = operation;
    try {
      const done = await settle(operation);
      if (done) log.info({ agentId, operation: kind, operationId: id }, done);
    } catch (error) {
      const what = { agentId, operation: kind, operationId: id };
      if (error instanceof UnavailableError) log.info(what, 'an operation waits for Temporal');
      else log.warn({ ...what, err: error }, 'an operation could not be settled: will retry');
    }
  }

  /** Returns the action taken, for the log. */
  async function settle(operation: OperationRow): Promise<string | undefined> {
    const { id, kind, requestedAt, status } = operation;
    const tenant = database.asUser(operation.userId);
    const agent = await tenant.transaction((db) => db.Agent.findByPk(operation.agentId));
    if (!agent) return undefined;
    const isGone = agent.deletedAt !== null;
    if (isGone || (status === 'requested' && agent.desired === 'deleted' && kind !== 'delete')) {
      const cancelled = { status: 'cancelled', error: AGENT_IS_GONE } as const;
      await endOperations(tenant, agent.id, cancelled, { id });
      return 'cancelled an operation of an agent that is removed';
    }
    const supervised = supervisedOf(agent);
    if (status === 'running') {
      if (await supervisors.isInFlight(supervised, id)) return undefined;
      // The new release was complete when its row named it, so keeping it loses no data.
      await services.releases.keepRelease(supervised, id);
      const failed = { id, kind, status: 'failed', error: SUPERVISOR_ENDED } as const;
      await services.operationStore.finish(supervised, failed);
      return 'failed an operation whose supervisor was ended';
    }
    if (kind === 'provision') {
      await supervisors.provision(supervised, id);
      return 'handed over a provisioning';
    }
    if (operationRules(kind).onRefusal === 'kept') {
      await supervisors.request(supervised, kind, id, requestedAt);
      return 'handed over a removal';
    }
    // The supervisor has the request, but its worker is late.
    if (await supervisors.hasRequest(supervised, id, requestedAt)) return undefined;
    // The operation was admitted, so its supervisor had it and was closed.
    if (operation.admittedAt !== null) {
      const hasFailed = await failAdmitted(tenant, operation, NEVER_BEGUN);
      return hasFailed ? 'failed a request whose supervisor was ended' : undefined;
    }
    // Fails if the operation was started or admitted concurrently.
    const isWithdrawn = await withdrawOperation(tenant, id);
    return isWithdrawn ? 'withdrew a request that no supervisor has' : undefined;
  }
}

/**
 * Requests again the removals that failed or were cancelled: after a minute, then each time after as long as
 * the attempts have lasted so far, at most a day. The audit log names the requester.
 */
async function resumeRemovals(database: Database): Promise<void> {
  await database.asPlatform().transaction(async (db) => {
    await db.lock('resume-removals');
    await db.query(
      `INSERT INTO operations (id, agent_id, user_id, kind, looked_at)
       SELECT gen_random_uuid()::text, a.id, a.user_id, 'delete', now() - interval '1 minute'
         FROM agents a
         CROSS JOIN LATERAL (
           SELECT min(o.requested_at) AS first, max(o.finished_at) AS last, count(*) AS tried,
                  bool_or(o.finished_at IS NULL) AS open
             FROM operations o WHERE o.agent_id = a.id AND o.kind = 'delete') removal
        WHERE a.desired = 'deleted' AND a.deleted_at IS NULL AND removal.tried > 0
          AND NOT removal.open
          AND now() - removal.last >=
            LEAST(GREATEST(removal.last - removal.first, interval '1 minute'), interval '1 day')
        LIMIT ${MAX_AT_ONCE}`,
    );
  });
}

/** Claims the open operations that were checked longest ago, so that each is part of one worker's pass only. */
function claim(database: Database): Promise<OperationRow[]> {
  return database.asPlatform().query<OperationRow>(
    `WITH claimed AS (
       UPDATE operations SET looked_at = now()
        WHERE id = ANY (ARRAY(
          SELECT id FROM operations
           WHERE finished_at IS NULL
             AND looked_at < now() - CASE status
               WHEN 'requested' THEN make_interval(secs => ${ABANDONED_SECONDS})
               ELSE make_interval(secs => ${RUNNING_SECONDS}) END
           ORDER BY looked_at LIMIT ${MAX_AT_ONCE} FOR UPDATE SKIP LOCKED))
       RETURNING id)
     ${selectFrom(Operation)} WHERE id IN (SELECT id FROM claimed)`,
  );
}

/** Recovers operations now and then periodically, one pass at a time, until the signal aborts. */
export function recoverPeriodically(
  dependencies: RecoverDependencies,
  signal: AbortSignal,
): Promise<void> {
  const failure = 'recovery failed, retrying';
  const { log } = dependencies;
  const work = () => recoverOperations(dependencies, signal);
  return periodically({ everyMs: INTERVAL_MS, failure, log, work }, signal);
}
