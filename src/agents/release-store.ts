import type { Transaction } from 'sequelize';
import { containerName } from '../containers/container-spec.js';
import type { Database } from '../database/database.js';
import type { AgentArchiveRow, AgentRow, OperationRow } from '../database/models.js';
import { rollBackCredential } from './agent-credentials.js';
import type { AgentRef } from './agent-ref.js';
import { AgentGoneError } from './runtime-store.js';
import { archivesOf } from './archives.js';
import { releaseOf } from './previous-release.js';

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
  constructor(private readonly database: Database) {}

  /** @throws AgentGoneError when the agent, or what it is to become, is not there any more. */
  async replacementOf(agent: AgentRef, operationId: string): Promise<Replacement> {
    return this.as(agent, async (transaction) => {
      const row = await this.find(agent, transaction);
      const operation = await this.operation(operationId, transaction);
      if (!row || !operation) throw new AgentGoneError(agent.agentId);
      return {
        image: operation.input?.image,
        volume: newVolume(row, operation),
        copyOf: await this.copyOf(row, operation, transaction),
      };
    });
  }

  /** A stopped agent takes note of the image that it is to start with. */
  async recordUpdate(agent: AgentRef, operationId: string): Promise<void> {
    await this.as(agent, async (transaction) => {
      const operation = await this.operation(operationId, transaction);
      const image = operation?.input?.image;
      if (image !== undefined) await this.update(agent, { image }, transaction);
    });
  }

  /** From here on the agent is what the operation makes of it, and can go back. */
  async beginRelease(agent: AgentRef, operationId: string): Promise<void> {
    await this.as(agent, async (transaction) => {
      const row = await this.find(agent, transaction);
      const operation = await this.operation(operationId, transaction);
      if (!row || !operation || row.previousRelease?.operationId === operationId) return;
      await this.update(
        agent,
        {
          previousRelease: releaseOf(row, operationId),
          volume: newVolume(row, operation),
          image: operation.input?.image ?? row.image,
        },
        transaction,
      );
    });
  }

  /** The replacement has proved itself, and a memory that it put away is archived. */
  async keepRelease(agent: AgentRef, operationId: string): Promise<void> {
    await this.as(agent, async (transaction) => {
      const row = await this.find(agent, transaction);
      const operation = await this.operation(operationId, transaction);
      if (!row || !operation || row.previousRelease?.operationId !== operationId) return;
      const { kind } = operation;
      if (kind === 'reset-memory' || kind === 'restore') {
        await this.archive(row, { ...operation, kind }, transaction);
      }
      const isMended = row.failedImage === row.image;
      await this.update(
        agent,
        { previousRelease: null, ...(isMended && { failedImage: null }) },
        transaction,
      );
    });
  }

  /** The agent is again what it was before the operation, which remembers an image that failed. */
  async rollBackRelease(agent: AgentRef, operationId: string): Promise<void> {
    await this.as(agent, async (transaction) => {
      const row = await this.find(agent, transaction);
      if (row?.previousRelease?.operationId !== operationId) return;
      const { operationId: _operationId, ...before } = row.previousRelease;
      const hasFailed = row.image !== before.image;
      await this.update(
        agent,
        { ...before, previousRelease: null, ...(hasFailed && { failedImage: row.image }) },
        transaction,
      );
      await rollBackCredential(this.database.models, operationId, transaction);
    });
  }

  /** The volumes that the agent uses, may go back to, or has archived. @throws AgentGoneError */
  async volumesOf(agent: AgentRef): Promise<string[]> {
    return this.as(agent, async (transaction) => {
      const row = await this.find(agent, transaction);
      if (!row) throw new AgentGoneError(agent.agentId);
      const archives = await archivesOf(this.database.models, agent.agentId, transaction);
      return [
        volumeOf(row),
        ...(row.previousRelease ? [volumeOf({ ...row, volume: row.previousRelease.volume })] : []),
        ...archives.map(({ volume }) => volume),
      ];
    });
  }

  private async copyOf(
    row: AgentRow,
    { kind, input }: OperationRow,
    transaction: Transaction,
  ): Promise<string | undefined> {
    if (kind !== 'restore') return kind === 'update' ? volumeOf(row) : undefined;
    const archive = await this.database.models.AgentArchive.findOne({
      where: { id: input?.archiveId ?? '', agentId: row.id },
      raw: true,
      transaction,
    });
    if (!archive) throw new AgentGoneError(row.id);
    return archive.volume;
  }

  private async archive(
    row: AgentRow,
    operation: { readonly id: string; readonly kind: AgentArchiveRow['reason'] },
    transaction: Transaction,
  ): Promise<void> {
    const { AgentArchive } = this.database.models;
    await AgentArchive.create(
      {
        id: operation.id,
        agentId: row.id,
        userId: row.userId,
        volume: volumeOf({ ...row, volume: row.previousRelease?.volume ?? null }),
        reason: operation.kind,
        createdAt: new Date(),
      },
      { transaction },
    );
    const kept = await archivesOf(this.database.models, row.id, transaction);
    const tooOld = kept.slice(MAX_ARCHIVES).map(({ id }) => id);
    await AgentArchive.destroy({ where: { id: tooOld }, transaction });
  }

  private find({ agentId }: AgentRef, transaction: Transaction): Promise<AgentRow | null> {
    const where = { id: agentId, deletedAt: null };
    return this.database.models.Agent.findOne({ where, raw: true, transaction });
  }

  private operation(id: string, transaction: Transaction): Promise<OperationRow | null> {
    return this.database.models.Operation.findByPk(id, { raw: true, transaction });
  }

  private async update(
    { agentId }: AgentRef,
    values: Partial<AgentRow>,
    transaction: Transaction,
  ): Promise<void> {
    const where = { id: agentId, deletedAt: null };
    await this.database.models.Agent.update(values, { where, transaction });
  }

  private as<T>(agent: AgentRef, work: (transaction: Transaction) => Promise<T>): Promise<T> {
    return this.database.asUser(agent.userId).transaction(work);
  }
}

function volumeOf({ id, volume }: Pick<AgentRow, 'id' | 'volume'>): string {
  return volume ?? containerName(id);
}

function newVolume(agent: AgentRow, operation: OperationRow): string {
  return `${containerName(agent.id)}-${operation.id.slice(0, 8)}`;
}
