import { volumeName } from '../../docker/containers/container-spec.js';
import type { MadeVolume } from '../../docker/containers/agent-volumes.js';
import type { Database, TenantTransaction } from '../../platform/database/database.js';
import type { AgentRow, AgentVolumeRow } from '../../platform/database/models.js';
import type { AgentRef } from '../../types/agent-ref.js';
import { AgentGoneError, presentAgent } from '../agents/agents.js';

/**
 * The volumes made by this database's operations. An unlisted volume belongs to another, probably newer,
 * state of the database and is never removed. Every method is idempotent.
 */
export class AgentVolumeStore {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /** Records a volume before it is created. @throws AgentGoneError */
  async name({ agentId, userId }: AgentRef, { name, madeBy }: MadeVolume): Promise<void> {
    await this.#as(userId, async (db) => {
      if (!(await presentAgent(db, agentId))) throw new AgentGoneError(agentId);
      const createdAt = new Date();
      await db.AgentVolume.upsert({ name, agentId, userId, madeBy, obsolete: false, createdAt });
    });
  }

  /** Returns all volumes of an agent, also of a removed one. */
  async of({ agentId, userId }: Pick<AgentRef, 'agentId' | 'userId'>): Promise<AgentVolumeRow[]> {
    return this.#as(userId, (db) => db.AgentVolume.findAll({ where: { agentId } }));
  }

  async forget({ agentId, userId }: AgentRef, names: readonly string[]): Promise<void> {
    if (names.length === 0) return;
    await this.#as(userId, async (db) => {
      await db.AgentVolume.destroy({ where: { agentId, name: [...names] } });
    });
  }

  #as<T>(userId: string, work: (db: TenantTransaction) => Promise<T>): Promise<T> {
    return this.#database.asUser(userId).transaction(work);
  }
}

export const volumeOf = ({ id, volume }: Pick<AgentRow, 'id' | 'volume'>): string =>
  volumeName({ agentId: id, volume: volume ?? undefined });

/** Marks volumes as unused; the next cleanup removes them. */
export async function markObsolete(
  db: TenantTransaction,
  agentId: string,
  names: readonly string[],
): Promise<void> {
  await db.AgentVolume.update({ obsolete: true }, { where: { agentId, name: [...names] } });
}
