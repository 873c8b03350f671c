import { randomUUID } from 'node:crypto';
import { DockerRefusedError } from '../../docker/containers/container-errors.js';
import { filesWithin } from '../../docker/containers/disk-limits.js';
import type { DockerHost } from '../../docker/containers/docker-host.js';
import { MEASURED_TOGETHER, type VolumeUse } from '../../docker/containers/volume-meter.js';
import type { Database } from '../../platform/database/database.js';
import type { AgentRow } from '../../platform/database/models.js';
import { requestNotification } from '../../notifications/outbox.js';
import type { AgentRef } from '../../types/agent-ref.js';
import { isStoragePlan, STORAGE_LIMITS, STORAGE_PLANS } from '../../types/plans.js';

/** Shares of the memory limit at which users are notified, and below which the notification is reset. */
const NOTIFIED_FROM = 0.8;
const FORGOTTEN_AT = 0.7;

export class MemoryFullError extends Error {
  override readonly name = 'MemoryFullError';
}

export interface UsedMemory {
  readonly agentId: string;
  readonly userId: string;
  /** Null for the image of new agents. */
  readonly image: string | null;
  readonly volume: string;
  /** The owner's storage plan, which adds to the limit. */
  readonly storage: string | null;
}

type Use = Pick<VolumeUse, 'bytes' | 'files'>;

type Owned = Pick<UsedMemory, 'storage'>;

/** The volume in use, with its size when last measured. */
const MEMORIES = `
  SELECT a.id AS "agentId", a.user_id AS "userId", a.image, v.name AS volume,
         v.bytes::float8 AS bytes, v.files::float8 AS files, p.plan AS storage
    FROM agents a JOIN agent_volumes v ON v.name = COALESCE(a.volume, 'agent-' || a.id)
    LEFT JOIN LATERAL current_subscription(a.user_id, 'storage') p ON p.holds
   WHERE a.deleted_at IS NULL`;

/**
 * SQL condition: the memory exceeds the bounds of its owner's storage plan, or the bounds of an owner without
 * a plan.
 */
const IS_FULL = `(v.bytes >= ($bounds::jsonb #>> ARRAY[coalesce(p.plan, 'none'), 'bytes'])::float8
         OR v.files >= ($bounds::jsonb #>> ARRAY[coalesce(p.plan, 'none'), 'files'])::float8)`;

const ON_HOST = `a.host = $host AND a.started_at IS NOT NULL`;
const IS_TO_RUN = `a.desired = 'running'`;
/** The explorer has written since the last measurement. */
const IS_WRITTEN = `v.written_at IS NOT NULL AND (v.measured_at IS NULL OR v.written_at > v.measured_at)`;

export class MemorySizes {
  readonly #database: Database;
  readonly #docker: DockerHost;
  readonly #image: string;

  constructor(database: Database, docker: DockerHost, image: string) {
    this.#database = database;
    this.#docker = docker;
    this.#image = image;
  }

  /** Returns memories that are due and may have grown since their last measurement, longest ago first. */
  due(host: string, olderThanMs: number, most: number): Promise<UsedMemory[]> {
    return this.#database.asPlatform().query<UsedMemory>(
      `${MEMORIES} AND ${ON_HOST} AND (${IS_TO_RUN} OR (${IS_WRITTEN})) AND
         (v.measured_at IS NULL OR v.measured_at < now() - make_interval(secs => $seconds))
       ORDER BY v.measured_at NULLS FIRST LIMIT $most`,
      { host, seconds: olderThanMs / 1000, most },
    );
  }

  /** Measures memories and notifies users once of nearly full ones. Returns those measured only in part. */
  async measure(memories: readonly UsedMemory[]): Promise<UsedMemory[]> {
    const partly: UsedMemory[] = [];
    for (const together of this.#batches(memories)) {
      const uses = await this.#measureBatch(together);
      for (const [at, memory] of together.entries()) {
        const use = uses?.[at];
        await this.#record(memory, use);
        const isFull = use !== undefined && this.#isFull({ ...use, storage: memory.storage });
        const isKnown = use ? use.complete || isFull : uses !== undefined;
        if (!isKnown) partly.push(memory);
      }
    }
    return partly;
  }

  /** Measures one batch; undefined when Docker refuses. */
  async #measureBatch(together: readonly UsedMemory[]) {
    const image = together[0]?.image ?? this.#image;
    try {
      return await this.#docker.volumes.measure(image, together, this.#widest(together));
    } catch (error) {
      if (error instanceof DockerRefusedError) return undefined;
      throw error;
    }
  }

  /** Splits memories into batches that one container can measure. */
  *#batches(memories: readonly UsedMemory[]): Generator<readonly UsedMemory[]> {
    for (const image of new Set(memories.map((memory) => memory.image))) {
      const all = memories.filter((memory) => memory.image === image);
      for (let start = 0; start < all.length; start += MEASURED_TOGETHER) {
        yield all.slice(start, start + MEASURED_TOGETHER);
      }
    }
  }

  /** Returns agents that should run and whose memory exceeds its limit. */
  async full(host: string): Promise<{ readonly agent: AgentRow; readonly reason: string }[]> {
    const platform = this.#database.asPlatform();
    const bounds = JSON.stringify(
      Object.fromEntries(
        ['none', ...STORAGE_PLANS].map((plan) => [plan, this.#boundsOf({ storage: plan })]),
      ),
    );
    const found = await platform.query<UsedMemory & Use>(
      `${MEMORIES} AND ${ON_HOST} AND ${IS_TO_RUN} AND ${IS_FULL} LIMIT 200`,
      { host, bounds },
    );
    const rows = await platform.transaction((db) =>
      db.Agent.findAll({ where: { id: found.map(({ agentId }) => agentId) } }),
    );
    return rows.flatMap((agent) => {
      const use = found.find(({ agentId }) => agentId === agent.id);
      return use ? [{ agent, reason: this.#reasonOf(use) }] : [];
    });
  }

  /** Refuses an agent whose memory is still full in a new measurement. @throws MemoryFullError */
  async requireRoom(agent: AgentRef): Promise<void> {
    const before = await this.#known(agent);
    if (!before || !this.#isFull(before)) return;
    await this.measure([before]);
    const now = await this.#known(agent);
    if (now && this.#isFull(now)) throw new MemoryFullError(this.#reasonOf(now));
  }

  /**
   * Admits a write from outside the agent, which may be stopped, and makes the memory due for measurement.
   * @throws MemoryFullError when the memory was full at its last measurement; DiskLowError
   */
  async admitWriting(agent: AgentRef): Promise<void> {
    await this.#docker.disk.room();
    const known = await this.#known(agent);
    if (!known) return;
    if (this.#isFull(known)) throw new MemoryFullError(this.#reasonOf(known));
    const where = { name: known.volume };
    await this.#database
      .asUser(agent.userId)
      .transaction((db) => db.AgentVolume.update({ writtenAt: new Date() }, { where }));
  }

  async #known({ agentId, userId }: AgentRef): Promise<(UsedMemory & Use) | undefined> {
    const tenant = this.#database.asUser(userId);
    const sql = `${MEMORIES} AND a.id = $agentId`;
    return (await tenant.query<UsedMemory & Use>(sql, { agentId }))[0];
  }

  #boundsOf({ storage }: Owned): Use {
    const more = isStoragePlan(storage) ? STORAGE_LIMITS[storage].bytes : 0;
    const bytes = this.#docker.disk.limit + more;
    return { bytes, files: filesWithin(bytes) };
  }

  /** Returns bounds at which the counting of memories ends, none of which may have more. */
  #widest(memories: readonly Owned[]): Use {
    const bounds = memories.map((memory) => this.#boundsOf(memory));
    return {
      bytes: Math.max(...bounds.map(({ bytes }) => bytes)),
      files: Math.max(...bounds.map(({ files }) => files)),
    };
  }

  #isFull(use: Use & Owned): boolean {
    return this.#shareOf(use) >= 1;
  }

  #shareOf({ bytes, files, storage }: Use & Owned): number {
    const bounds = this.#boundsOf({ storage });
    return Math.max(bytes / bounds.bytes, files / bounds.files);
  }

  #reasonOf({ bytes, files, storage }: Use & Owned): string {
    const bounds = this.#boundsOf({ storage });
    const what =
      bytes >= bounds.bytes
        ? `${inMib(bytes)} of the ${inMib(bounds.bytes)}`
        : `${files} of the ${bounds.files} files`;
    return (
      `Its memory is full, with ${what} of its maximum: reset the memory, ` +
      'buy a storage plan or have the limit raised, and start the agent'
    );
  }

  async #record({ agentId, storage, userId, volume }: UsedMemory, use: VolumeUse | undefined) {
    await this.#database.asUser(userId).transaction(async (db) => {
      const row = await db.AgentVolume.findByPk(volume, { lock: true });
      if (row?.agentId !== agentId) return;
      const measuredAt = new Date();
      const where = { name: volume };
      if (!use) {
        await db.AgentVolume.update({ measuredAt }, { where });
        return;
      }
      // An incomplete measurement is only a lower bound.
      const least = use.complete ? { bytes: 0, files: 0 } : row;
      const bytes = Math.max(use.bytes, Number(least.bytes));
      const files = Math.max(use.files, Number(least.files));
      const share = this.#shareOf({ bytes, files, storage });
      const isNotified =
        share >= NOTIFIED_FROM || (row.notifiedAt !== null && share >= FORGOTTEN_AT);
      const notifiedAt = isNotified ? (row.notifiedAt ?? measuredAt) : null;
      const measured = {
        bytes: String(bytes),
        files: String(files),
        measuredAt,
        notifiedAt,
      };
      await db.AgentVolume.update(measured, { where });
      if (row.notifiedAt !== null || !isNotified || share >= 1) return;
      const id = randomUUID();
      await requestNotification(db, {
        id,
        agent: { agentId, userId },
        event: 'memory_filling',
        share,
      });
    });
  }
}

const inMib = (bytes: number): string => `${Math.floor(bytes / 1024 ** 2)} MiB`;
