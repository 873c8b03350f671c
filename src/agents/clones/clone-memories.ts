import { AgentGoneError } from '../agents/agents.js';
import type { AgentRef } from '../../types/agent-ref.js';
import { volumeOf } from '../memory/agent-volume-store.js';
import type { MadeVolume, MeasuredSpec } from '../../docker/containers/agent-volumes.js';
import type { Database, TenantTransaction } from '../../platform/database/database.js';

export class ParentGoneError extends Error {
  constructor() {
    super('The parent agent of this clone has been removed');
    this.name = 'ParentGoneError';
  }
}

/** The source of each clone's memory, and the progress of the copy. All methods are idempotent. */
export class CloneMemories {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
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

  #as<T>({ userId }: AgentRef, work: (db: TenantTransaction) => Promise<T>): Promise<T> {
    return this.#database.asUser(userId).transaction(work);
  }
}
