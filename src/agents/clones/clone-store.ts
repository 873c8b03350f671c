import { requestProvisioning } from '../lifecycle/create-agent.js';
import { AgentGoneError, presentAgent, updateAgent } from '../agents/agents.js';
import { supervisedOf, type Supervised } from '../operations/supervisors.js';
import { AGENT_IS_GONE } from '../operations/delete-agent.js';
import type { Database, TenantTransaction } from '../../platform/database/database.js';
import type { CloneRow } from '../../platform/database/models.js';
import type { MadeVolume, MeasuredSpec } from '../../docker/containers/agent-volumes.js';
import type { AgentRef } from '../../types/agent-ref.js';
import { volumeOf } from '../memory/agent-volume-store.js';
import { ParentGoneError } from './clone-errors.js';
import { transfer } from '../../money/ledger/ledger.js';

export interface WaitingClone extends Pick<
  CloneRow,
  'id' | 'userId' | 'hash' | 'chainId' | 'payer' | 'amount' | 'block' | 'paidAt'
> {
  readonly hasParent: boolean;
}

export interface HandedOver {
  readonly agent: Supervised;
  readonly operationId: string;
}

/** Clones with their payments, and the copies of their memories. Every method is idempotent. */
export class CloneStore {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /** Returns a clone with a pending payment. Fails a clone whose agent is being removed. */
  async waiting(id: string): Promise<WaitingClone | undefined> {
    const waits = await this.#ofClone(id, async (db, clone) => {
      if (clone.state !== 'waiting') return undefined;
      const agent = await presentAgent(db, id);
      if (!agent || agent.desired === 'deleted') return { clone, isGone: true, hasParent: false };
      const parent = await presentAgent(db, clone.parentAgentId);
      const hasParent = parent !== null && parent.desired !== 'deleted';
      return { clone, isGone: false, hasParent };
    });
    if (!waits) return undefined;
    if (!waits.isGone) return { ...waits.clone, hasParent: waits.hasParent };
    await this.fail(id, AGENT_IS_GONE);
    return undefined;
  }

  /** Marks a clone as failed, with a reason for its owner; repeating the request retries the clone. */
  async fail(id: string, reason: string): Promise<void> {
    await this.#ofClone(id, async (db) => {
      const failed = await db.query(
        `UPDATE clones SET state = 'failed' WHERE id = $id AND state = 'waiting' RETURNING id`,
        { id },
      );
      if (failed.length === 0) return;
      await updateAgent(db, id, { status: 'error', statusReason: reason });
    });
  }

  /** Records and books the final payment, in base units and with any excess over the price. */
  async recordPaid(id: string, received: bigint): Promise<void> {
    await this.#database.asPlatform().transaction(async (db) => {
      const paid = await db.query(
        'UPDATE clones SET paid_at = now() WHERE id = $id AND paid_at IS NULL RETURNING id',
        { id },
      );
      if (paid.length === 0) return;
      await transfer(db, {
        debit: 'external',
        credit: 'treasury',
        currency: 'pathusd',
        amount: received,
        cause: `clone:${id}`,
      });
    });
  }

  /**
   * Records the provisioning of a paid clone, which from then on is an ordinary agent; undefined without one.
   */
  async handOver(id: string): Promise<HandedOver | undefined> {
    return this.#ofClone(id, async (db, { requestedBy: actor, requestId }) => {
      const agent = await db.Agent.findOne({ where: { id, deletedAt: null }, lock: true });
      if (!agent || agent.desired === 'deleted') return undefined;
      const [handed] = await db.query(
        `UPDATE clones SET state = 'handed-over'
          WHERE id = $id AND state = 'waiting' AND paid_at IS NOT NULL RETURNING id`,
        { id },
      );
      const operation = handed
        ? await requestProvisioning(db, agent, { actor, requestId })
        : await db.Operation.findOne({
            where: { agentId: id, kind: 'provision', status: 'requested' },
          });
      return operation ? { agent: supervisedOf(agent), operationId: operation.id } : undefined;
    });
  }

  /** Reports whether the memory must still be copied: only a volume recorded as complete counts as a copy. */
  async isToBeCopied(agent: AgentRef, present: MadeVolume | undefined): Promise<boolean> {
    const clone = await this.#as(agent, (db) => db.Clone.findByPk(agent.agentId));
    return clone !== null && (present === undefined || present.madeBy !== clone.memoryMadeBy);
  }

  /** Returns the volume to copy. @throws AgentGoneError, ParentGoneError */
  async originalOf(agent: AgentRef): Promise<MeasuredSpec> {
    return this.#as(agent, async (db) => {
      const clone = await db.Clone.findByPk(agent.agentId);
      if (!clone) throw new AgentGoneError(agent.agentId);
      const parent = await db.Agent.findByPk(clone.parentAgentId);
      if (!parent || parent.desired === 'deleted') throw new ParentGoneError();
      return { agentId: parent.id, userId: parent.userId, volume: volumeOf(parent) };
    });
  }

  async recordCopied(agent: AgentRef, memoryMadeBy: string): Promise<void> {
    await this.#as(agent, (db) =>
      db.Clone.update({ memoryMadeBy }, { where: { id: agent.agentId } }),
    );
  }

  #as<T>({ userId }: Pick<AgentRef, 'userId'>, work: (db: TenantTransaction) => Promise<T>) {
    return this.#database.asUser(userId).transaction(work);
  }

  /** Runs work on a clone as its owner; undefined if the clone no longer exists. */
  async #ofClone<T>(
    id: string,
    work: (db: TenantTransaction, clone: CloneRow) => Promise<T>,
  ): Promise<T | undefined> {
    const [found] = await this.#database
      .asPlatform()
      .query<{ userId: string }>(`SELECT user_id AS "userId" FROM clones WHERE id = $id`, { id });
    if (!found) return undefined;
    return this.#as(found, async (db) => {
      const clone = await db.Clone.findByPk(id, { lock: true });
      return clone ? work(db, clone) : undefined;
    });
  }
}
