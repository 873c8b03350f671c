import { containerName } from '../../docker/containers/container-spec.js';
import type { Database, TenantTransaction } from '../../platform/database/database.js';
import type {
  AgentArchiveRow,
  AgentRow,
  OperationRow,
  PreviousRelease,
} from '../../platform/database/models.js';
import { rollBackCredential } from '../credentials/agent-credentials.js';
import { rollBackInstall } from '../skills/installed-skills.js';
import type { AgentRef } from '../../types/agent-ref.js';
import { AgentGoneError } from '../agents/agents.js';
import { presentAgent, updateAgent } from '../agents/agents.js';
import { archivesOf } from '../memory/archives.js';
import { markObsolete, volumeOf } from '../memory/agent-volume-store.js';

/** Maximum number of archived memories per agent; a new one replaces the oldest. */
export const MAX_ARCHIVES = 5;

export interface Replacement {
  /** The image of an update. */
  readonly image: string | undefined;
  readonly volume: string;
  /** The volume to copy; undefined for an empty one. */
  readonly copyOf: string | undefined;
}

/** An agent's image and memory volume, during and after their replacement. Every method is idempotent. */
export class ReleaseStore {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /** Returns an operation's replacement. @throws AgentGoneError without agent, operation or archive. */
  async replacementOf(agent: AgentRef, operationId: string): Promise<Replacement> {
    return this.#as(agent, async (db) => {
      const row = await presentAgent(db, agent.agentId);
      const operation = await db.Operation.findByPk(operationId);
      if (!row || !operation) throw new AgentGoneError(agent.agentId);
      return {
        image: operation.input?.image,
        volume: newVolume(row, operation),
        copyOf: await this.#copyOf(db, row, operation),
      };
    });
  }

  /** Stores the image with which a stopped agent starts next. */
  async recordUpdate(agent: AgentRef, operationId: string): Promise<void> {
    await this.#as(agent, async (db) => {
      const operation = await db.Operation.findByPk(operationId);
      const image = operation?.input?.image;
      if (image !== undefined) await updateAgent(db, agent.agentId, { image });
    });
  }

  async beginRelease(agent: AgentRef, operationId: string): Promise<void> {
    await this.#as(agent, async (db) => {
      const row = await presentAgent(db, agent.agentId);
      const operation = await db.Operation.findByPk(operationId);
      if (!row || !operation || row.previousRelease?.operationId === operationId) return;
      await updateAgent(db, agent.agentId, {
        previousRelease: releaseOf(row, operationId),
        volume: newVolume(row, operation),
        image: operation.input?.image ?? row.image,
      });
    });
  }

  /** Confirms a replacement and archives the replaced memory, unless `hadMemory` is false: it was missing. */
  async keepRelease(agent: AgentRef, operationId: string, hadMemory = true): Promise<void> {
    await this.#as(agent, async (db) => {
      const row = await presentAgent(db, agent.agentId);
      const operation = await db.Operation.findByPk(operationId);
      if (!row || !operation || row.previousRelease?.operationId !== operationId) return;
      const { kind } = operation;
      const before = volumeOf({ ...row, volume: row.previousRelease.volume });
      // A missing memory stays recorded and is never removed: it may reappear.
      if (hadMemory && (kind === 'reset-memory' || kind === 'restore')) {
        await this.#archive(db, row, { id: operation.id, reason: kind, volume: before });
      } else if (hadMemory && before !== volumeOf(row)) {
        await markObsolete(db, row.id, [before]);
      }
      const isMended = row.failedImage === row.image;
      await updateAgent(db, agent.agentId, {
        previousRelease: null,
        ...(isMended && { failedImage: null }),
      });
    });
  }

  /** Restores the state from before the operation and remembers an image that failed. */
  async rollBackRelease(agent: AgentRef, operationId: string): Promise<void> {
    await this.#as(agent, async (db) => {
      const row = await presentAgent(db, agent.agentId);
      const operation = await db.Operation.findByPk(operationId);
      if (!row || !operation) return;
      const present = row.previousRelease?.operationId === operationId ? row.previousRelease : row;
      const made = newVolume(row, operation);
      if (made !== volumeOf({ ...row, volume: present.volume })) {
        await markObsolete(db, row.id, [made]);
      }
      if (row.previousRelease?.operationId !== operationId) return;
      const { operationId: _operationId, ...before } = row.previousRelease;
      const hasFailed = row.image !== before.image;
      await updateAgent(db, agent.agentId, {
        ...before,
        previousRelease: null,
        ...(hasFailed && { failedImage: row.image }),
      });
      await rollBackCredential(db, operationId);
      await rollBackInstall(db, operationId);
    });
  }

  async #copyOf(
    db: TenantTransaction,
    row: AgentRow,
    { kind, input }: OperationRow,
  ): Promise<string | undefined> {
    if (kind !== 'restore') return kind === 'update' ? volumeOf(row) : undefined;
    const archive = await db.AgentArchive.findOne({
      where: { id: input?.archiveId ?? '', agentId: row.id },
    });
    if (!archive) throw new AgentGoneError(row.id);
    return archive.volume;
  }

  async #archive(
    db: TenantTransaction,
    row: AgentRow,
    archive: Pick<AgentArchiveRow, 'id' | 'reason' | 'volume'>,
  ): Promise<void> {
    const { id: agentId, userId } = row;
    await db.AgentArchive.create({ ...archive, agentId, userId, createdAt: new Date() });
    const tooOld = (await archivesOf(db, row.id)).slice(MAX_ARCHIVES);
    await db.AgentArchive.destroy({ where: { id: tooOld.map(({ id }) => id) } });
    const volumes = tooOld.map(({ volume }) => volume);
    await markObsolete(db, row.id, volumes);
  }

  #as<T>(agent: AgentRef, work: (db: TenantTransaction) => Promise<T>): Promise<T> {
    return this.#database.asUser(agent.userId).transaction(work);
  }
}

function newVolume(agent: AgentRow, operation: OperationRow): string {
  return `${containerName(agent.id)}-${operation.id.slice(0, 8)}`;
}

/** Returns the agent's present state, stored for the rollback of an operation. */
export function releaseOf(agent: AgentRow, operationId: string): PreviousRelease {
  const { image, runtimeVersion, volume, plan, aiProvider, model, config } = agent;
  return { operationId, image, runtimeVersion, volume, plan, aiProvider, model, config };
}
