import { containerName } from '../../docker/containers/container-spec.js';
import type { Database, TenantTransaction } from '../../platform/database/database.js';
import type { AgentArchiveRow, AgentRow, OperationRow } from '../../platform/database/models.js';
import { rollBackCredential } from '../credentials/agent-credentials.js';
import type { AgentRef } from '../../types/agent-ref.js';
import { AgentGoneError } from '../agents/agents.js';
import { presentAgent, updateAgent } from '../agents/agents.js';
import { archivesOf } from '../memory/archives.js';
import { markObsolete, volumeOf } from '../memory/agent-volume-store.js';
import { releaseOf } from '../memory/previous-release.js';

/** Archived memories of one agent; the oldest goes for a newer one. */
export const MAX_ARCHIVES = 5;

/** What an operation replaces in an agent. */
export interface Replacement {
  /** Of an update: what is to run. */
  readonly image: string | undefined;
  /** The new volume, made for this operation alone. */
  readonly volume: string;
  /** The volume that it is a copy of; none for an empty one. */
  readonly copyOf: string | undefined;
}

/**
 * What an agent runs and where its memory is, while that is replaced and afterwards. Every method
 * may be called again with the same arguments: the second call changes nothing.
 */
export class ReleaseStore {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /** @throws AgentGoneError when the agent, or what it is to become, is not there any more. */
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

  /** A stopped agent takes note of the image that it is to start with. */
  async recordUpdate(agent: AgentRef, operationId: string): Promise<void> {
    await this.#as(agent, async (db) => {
      const operation = await db.Operation.findByPk(operationId);
      const image = operation?.input?.image;
      if (image !== undefined) await updateAgent(db, agent.agentId, { image });
    });
  }

  /** From here on the agent is what the operation makes of it, and can go back. */
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

  /**
   * The replacement has proved itself, and a memory that it put away is archived.
   *
   * @param hadMemory false where there was none left to put away.
   */
  async keepRelease(agent: AgentRef, operationId: string, hadMemory = true): Promise<void> {
    await this.#as(agent, async (db) => {
      const row = await presentAgent(db, agent.agentId);
      const operation = await db.Operation.findByPk(operationId);
      if (!row || !operation || row.previousRelease?.operationId !== operationId) return;
      const { kind } = operation;
      const before = volumeOf({ ...row, volume: row.previousRelease.volume });
      // One that was missing stays named and is never removed: it may be found again.
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

  /** The agent is again what it was before the operation, which remembers an image that failed. */
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
