import { randomUUID } from 'node:crypto';
import pLimit from 'p-limit';
import type { AgentOperations } from './agent-operations.js';
import { recordAudit } from '../../platform/audit/audit.js';
import type { Requester } from '../../platform/audit/requester.js';
import type { Database, TenantTransaction } from '../../platform/database/database.js';
import { ConflictError, NotFoundError, ServiceError, UnavailableError } from '../../lib/errors.js';
import { isSilent } from '../hosts/host-status.js';
import { hostLoad } from '../hosts/hosts.js';
import { loseAgents } from '../hosts/lose-agents.js';

/** Agents that one drain stops: repeated, it goes on with the rest. */
const MAX_DRAINED = 200;

/** Agents that are told to stop at a time. */
const DRAINED_AT_ONCE = 10;

/** An operator, who sees all tenants. */
type Operator = Pick<Requester, 'actor' | 'requestId'>;

export interface Drained {
  /** Stops that were begun, or were under way already. */
  readonly began: readonly { readonly agentId: string; readonly operationId: string }[];
  /** Agents that could not be told to stop now, and why. */
  readonly refused: readonly { readonly agentId: string; readonly error: string }[];
  /** Agents that should still run, those refused included. */
  readonly remaining: number;
}

/** What operators do to a Docker host. */
export class HostOperations {
  readonly #database: Database;
  readonly #agents: Pick<AgentOperations, 'run'>;

  constructor(database: Database, agents: Pick<AgentOperations, 'run'>) {
    this.#database = database;
    this.#agents = agents;
  }

  /** Keeps new agents away from it; those on it run on. @throws NotFoundError, ConflictError */
  cordon(by: Operator, id: string): Promise<void> {
    return this.#setCordon(by, id, true);
  }

  /** Lets new agents come again. @throws NotFoundError, ConflictError */
  uncordon(by: Operator, id: string): Promise<void> {
    return this.#setCordon(by, id, false);
  }

  /**
   * Cordons the host, and stops its agents: their memories stay. Every stop is an operation of its
   * agent, recorded and audited as any other; again it begins only what is missing.
   *
   * @throws NotFoundError, ConflictError
   */
  async drain(by: Operator, id: string): Promise<Drained> {
    await this.cordon(by, id);
    // Who should run and is not being stopped; a creation that came before the cordon is in it.
    const agents = await this.#database.asPlatform().query<{ id: string; userId: string }>(
      `SELECT id, user_id AS "userId" FROM agents
        WHERE host = $id AND desired = 'running' AND deleted_at IS NULL ORDER BY id`,
      { id },
    );
    const limit = pLimit(DRAINED_AT_ONCE);
    const began: Drained['began'][number][] = [];
    const refused: Drained['refused'][number][] = [];
    let isOut = false;
    const stop = async ({ id: agentId, userId }: (typeof agents)[number]) => {
      // One after the other would wait as long for nothing.
      if (isOut) return;
      const tenant = this.#database.asUser(userId);
      const request = { ...by, tenant, idempotencyId: randomUUID() };
      try {
        const { operationId } = await this.#agents.run(request, agentId, 'stop');
        began.push({ agentId, operationId });
      } catch (error) {
        if (error instanceof NotFoundError) return; // removed meanwhile
        if (!(error instanceof ServiceError)) throw error;
        isOut ||= error instanceof UnavailableError;
        refused.push({ agentId, error: error.message });
      }
    };
    await Promise.all(agents.slice(0, MAX_DRAINED).map((agent) => limit(stop, agent)));
    return { began, refused, remaining: agents.length - began.length };
  }

  /**
   * Removes a host that will not come back, and says first what is lost with it. Its agents are left
   * in error, and only their removal can be asked for; whose removal was under way is removed. Their
   * operations end. What Temporal has of them, a worker takes away within a minute.
   *
   * @param confirmed the host's id, by who knows what is lost.
   * @throws NotFoundError; ConflictError with what would be lost when it is not confirmed, and while
   *   the host's worker is there.
   */
  async remove(by: Operator, id: string, confirmed: string | undefined): Promise<void> {
    await this.#database.asPlatform().transaction(async (db) => {
      await db.lock('hosts');
      const load = await hostLoad(db, id);
      if (!load) throw new NotFoundError('Host not found');
      if (load.removing) return;
      if (!isSilent(load)) {
        throw new ConflictError(
          `The worker of host ${id} was heard of ${Math.round(load.unseenSeconds)} s ago: drain the ` +
            'host and stop its worker first',
        );
      }
      const lost = await wouldBeLost(db, id);
      if (confirmed !== id) {
        throw new ConflictError(
          `With host ${id} the memories of ${lost.agents} agents are lost for good: ` +
            `repeat with ?confirm=${id}`,
          { lost },
        );
      }
      await db.query('UPDATE hosts SET removed_at = now(), updated_at = now() WHERE id = $id', {
        id,
      });
      await loseAgents(db, by, id);
      await recordAudit(db, { ...by, action: 'host.remove', subject: id, detail: lost });
    });
  }

  async #setCordon(by: Operator, id: string, cordoned: boolean): Promise<void> {
    await this.#database.asPlatform().transaction(async (db) => {
      // What is being placed has been placed before, and what comes later sees it.
      await db.lock('hosts');
      const load = await hostLoad(db, id);
      if (!load) throw new NotFoundError('Host not found');
      if (load.removing) throw new ConflictError(`Host ${id} is being removed`);
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

/** Of the agents on the host that are not being removed. */
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
