import { randomUUID } from 'node:crypto';
import type { AgentOperations } from './agent-operations.js';
import { recordAudit } from '../../platform/audit/audit.js';
import type { Requester } from '../../platform/audit/requester.js';
import type { Database, TenantTransaction } from '../../platform/database/database.js';
import { ConflictError, NotFoundError, ServiceError, UnavailableError } from '../../lib/errors.js';
import { FairLimiter } from '../../lib/fair-limiter.js';
import { isSilent } from '../hosts/host-status.js';
import { hostLoad } from '../hosts/hosts.js';
import { markAgentsLost } from '../hosts/lose-agents.js';

/** Maximum number of agents that one drain stops; a repeated drain continues with the rest. */
const MAX_DRAINED = 200;

const DRAINED_AT_ONCE = 10;

type Operator = Pick<Requester, 'actor' | 'requestId'>;

export interface Drained {
  readonly began: readonly { readonly agentId: string; readonly operationId: string }[];
  readonly refused: readonly { readonly agentId: string; readonly error: string }[];
  /** Agents that should still run, including the refused ones. */
  readonly remaining: number;
}

export class HostOperations {
  readonly #database: Database;
  readonly #agents: Pick<AgentOperations, 'run'>;

  constructor(database: Database, agents: Pick<AgentOperations, 'run'>) {
    this.#database = database;
    this.#agents = agents;
  }

  /** Excludes the host from placement; its agents continue to run. @throws NotFoundError, ConflictError */
  cordon(by: Operator, id: string): Promise<void> {
    return this.#setCordon(by, id, true);
  }

  uncordon(by: Operator, id: string): Promise<void> {
    return this.#setCordon(by, id, false);
  }

  /**
   * Cordons the host and stops its agents by ordinary operations; a repeated drain starts the missing stops.
   * @throws NotFoundError, ConflictError
   */
  async drain(by: Operator, id: string): Promise<Drained> {
    await this.cordon(by, id);
    // Includes creations placed before the cordon.
    const agents = await this.#database.asPlatform().query<{ id: string; userId: string }>(
      `SELECT id, user_id AS "userId" FROM agents
        WHERE host = $id AND desired = 'running' AND deleted_at IS NULL ORDER BY id`,
      { id },
    );
    const limiter = new FairLimiter({ atOnce: DRAINED_AT_ONCE, perOwner: DRAINED_AT_ONCE });
    const began: Drained['began'][number][] = [];
    const refused: Drained['refused'][number][] = [];
    let outage: UnavailableError | undefined;
    const stop = async ({ id: agentId, userId }: (typeof agents)[number]) => {
      // While Temporal is unavailable, every further stop would only wait for the same timeout.
      if (outage) {
        refused.push({ agentId, error: outage.message });
        return;
      }
      const tenant = this.#database.asUser(userId);
      const request = { ...by, tenant, idempotencyId: randomUUID() };
      try {
        const { operationId } = await this.#agents.run(request, agentId, 'stop');
        began.push({ agentId, operationId });
      } catch (error) {
        if (error instanceof NotFoundError) return; // removed since the query
        if (!(error instanceof ServiceError)) throw error;
        if (error instanceof UnavailableError) outage ??= error;
        refused.push({ agentId, error: error.message });
      }
    };
    await Promise.all(
      agents
        .slice(0, MAX_DRAINED)
        .map((agent) => limiter.run({ owner: agent.userId }, () => stop(agent))),
    );
    return { began, refused, remaining: agents.length - began.length };
  }

  /**
   * Removes a lost host permanently, with its agents' memories. A worker ends their workflows within a minute.
   * @throws NotFoundError; ConflictError while the host's worker reports or until `confirmed` is the host's
   * id
   */
  async remove(by: Operator, id: string, confirmed: string | undefined): Promise<void> {
    await this.#database.asPlatform().transaction(async (db) => {
      await db.lock('hosts');
      const load = await hostLoad(db, id);
      if (!load) throw new NotFoundError('Host not found');
      if (load.removing) return;
      if (!isSilent(load)) {
        throw new ConflictError(
          `The worker of host ${id} last reported ${Math.round(load.unseenSeconds)} s ago (` +
            'drain the host and stop its worker first)',
          'HOST_REPORTS',
        );
      }
      const lost = await wouldBeLost(db, id);
      if (confirmed !== id) {
        throw new ConflictError(
          `Removing host ${id} permanently destroys the memories of ${lost.agents} agents (` +
            `repeat with ?confirm=${id} to confirm)`,
          'CONFIRMATION_REQUIRED',
          { lost },
        );
      }
      await db.query('UPDATE hosts SET removed_at = now(), updated_at = now() WHERE id = $id', {
        id,
      });
      await markAgentsLost(db, by, id);
      await recordAudit(db, { ...by, action: 'host.remove', subject: id, detail: lost });
    });
  }

  async #setCordon(by: Operator, id: string, cordoned: boolean): Promise<void> {
    await this.#database.asPlatform().transaction(async (db) => {
      // With the lock, earlier placements are committed and later ones see the cordon.
      await db.lock('hosts');
      const load = await hostLoad(db, id);
      if (!load) throw new NotFoundError('Host not found');
      if (load.removing) throw new ConflictError(`Host ${id} is being removed`, 'HOST_REMOVING');
      if (load.cordoned === cordoned) return;
      await db.query(
        `UPDATE hosts SET cordoned_at = ${cordoned ? 'now()' : 'NULL'}, updated_at = now()
          WHERE id = $id`,
        { id },
      );
      const action = cordoned ? 'host.cordon' : 'host.uncordon';
      await recordAudit(db, { ...by, action, subject: id });
    });
  }
}

/** Counts the agents on the host that are not being removed, with their archives and operations. */
async function wouldBeLost(db: TenantTransaction, id: string) {
  const [lost] = await db.query<{ agents: number; archives: number; operations: number }>(
    `SELECT count(*)::integer AS agents,
            (SELECT count(*)::integer FROM agent_archives r WHERE r.agent_id = ANY (array_agg(a.id)))
              AS archives,
            (SELECT count(*)::integer FROM operations o
              WHERE o.agent_id = ANY (array_agg(a.id)) AND o.finished_at IS NULL) AS operations
       FROM agents a WHERE host = $id AND desired <> 'deleted' AND deleted_at IS NULL`,
    { id },
  );
  return { agents: 0, archives: 0, operations: 0, ...lost };
}
