import { AgentGoneError } from '../agents/agents.js';
import type { AgentRef } from '../../types/agent-ref.js';
import { volumeOf } from '../memory/agent-volume-store.js';
import type { MadeVolume, MeasuredSpec } from '../../docker/containers/agent-volumes.js';
import type { Database, TenantTransaction } from '../../platform/database/database.js';

/** The parent is removed, and its memory with it: nothing is left to be copied. */
export class ParentGoneError extends Error {
  constructor() {
    super('The agent that it is to be a clone of is removed');
    this.name = 'ParentGoneError';
  }
}

/** Whose memory a clone gets, and whether it has it. All of it may be asked and told again. */
export class CloneMemories {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /**
   * Whether an agent's first memory is still to be copied from another's. What a copy that broke off
   * has left does not count: what is there is what was put down when it was complete, or is not it.
   *
   * @param present the volume that is there.
   */
  async isToBeCopied(agent: AgentRef, present: MadeVolume | undefined): Promise<boolean> {
    const clone = await this.#as(agent, (db) => db.Clone.findByPk(agent.agentId));
    return clone !== null && (present === undefined || present.madeBy !== clone.memoryMadeBy);
  }

  /** The volume that is copied for a clone. @throws AgentGoneError, ParentGoneError */
  async originalOf(agent: AgentRef): Promise<MeasuredSpec> {
    return this.#as(agent, async (db) => {
      const clone = await db.Clone.findByPk(agent.agentId);
      if (!clone) throw new AgentGoneError(agent.agentId);
      const parent = await db.Agent.findByPk(clone.parentAgentId);
      if (!parent || parent.desired === 'deleted') throw new ParentGoneError();
      return { agentId: parent.id, userId: parent.userId, volume: volumeOf(parent) };
    });
  }

  /** All of it is in the volume that this maker has made. */
  async recordCopied(agent: AgentRef, memoryMadeBy: string): Promise<void> {
    await this.#as(agent, (db) =>
      db.Clone.update({ memoryMadeBy }, { where: { id: agent.agentId } }),
    );
  }

  #as<T>({ userId }: AgentRef, work: (db: TenantTransaction) => Promise<T>): Promise<T> {
    return this.#database.asUser(userId).transaction(work);
  }
}
