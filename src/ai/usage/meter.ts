import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { Database } from '../../platform/database/database.js';
import { UnavailableError } from '../../lib/errors.js';
import { pause } from '../../lib/pause.js';
import { periodically } from '../../platform/process/periodically.js';
import { Quota, SIGN_OF_LIFE_MS, type TokenClaim } from './quota.js';
import { settleAbandoned } from './rollups.js';
import { settleUsage } from './settle-usage.js';
import { UsageJournal } from './usage-journal.js';
import type { ToolCount } from './tool-counts.js';
import { PLATFORM_TOOLS, type UsageRecord } from './usage-record.js';

/**
 * Milliseconds for which records are collected. Calls of the same users wait with their reservations during a
 * write, so few large batches are better than many small ones.
 */
const GATHER_MS = 100;
/** Milliseconds between two attempts while the database is unavailable. */
const RETRY_MS = 1_000;
/** Maximum number of records that wait for an unavailable database; beyond this, calls are rejected. */
const MAX_WAITING = 100_000;
/** Milliseconds between two updates of the usage of calls in flight. */
const REFRESH_MS = 1_000;
/** Milliseconds between two checks for reservations of processes that died. */
const SETTLE_MS = 60_000;
/** Milliseconds without a call after which a user's advance reservation is released. */
const IDLE_MS = 5_000;
/** Signs of life that may be missing before a file counts as abandoned. */
const ABANDONED_AFTER = 4;

export interface MeterOptions {
  readonly database: Database;
  /** Folder of the journal; it must survive this process. */
  readonly folder: string;
  readonly log: Logger;
  readonly signOfLifeMs?: number;
}

/** Calls of the platform's own tools by one request. */
export interface PlatformToolCalls {
  readonly userId: string;
  readonly endpoint: string;
  readonly tools: readonly ToolCount[];
}

/**
 * Reserves quota before each AI call and records usage after it, without waiting for the database and without
 * losing a record if this process is killed.
 */
export class Meter {
  readonly #options: MeterOptions;
  readonly #quota: Quota;
  readonly #journal: UsageJournal;
  readonly #signOfLifeMs: number;
  #writing: Promise<void> | undefined;
  readonly #closing = new AbortController();
  readonly #living: Promise<unknown>;

  /** @throws the error of the file system: without a journal no call is answered. */
  constructor(options: MeterOptions) {
    this.#options = options;
    this.#quota = new Quota(options.database);
    this.#journal = new UsageJournal(options.folder);
    this.#signOfLifeMs = options.signOfLifeMs ?? SIGN_OF_LIFE_MS;
    // Independent loops: an unavailable database must not make the journal seem abandoned.
    this.#living = Promise.all([
      this.#regularly(this.#signOfLifeMs, () => this.#journal.touch()),
      this.#regularly(this.#signOfLifeMs, () => this.#quota.keep()),
      this.#regularly(this.#signOfLifeMs, () => this.#recover()),
      this.#regularly(REFRESH_MS, () => this.#journal.open.refresh()),
      this.#regularly(SETTLE_MS, () => this.#settleAbandoned()),
      this.#regularly(IDLE_MS, () => this.#retireIdle()),
    ]);
  }

  /**
   * Reserves quota for a call; `record` or `release` must follow.
   * @throws QuotaExceededError; UnavailableError if usage cannot be recorded.
   */
  async reserve(claim: TokenClaim): Promise<void> {
    if (this.#journal.size >= MAX_WAITING) {
      throw new UnavailableError(
        'Usage cannot be recorded because the database does not answer: retry later',
      );
    }
    await this.#quota.reserve(claim);
  }

  /**
   * Announces a call, whose usage given here counts if this process is killed before `record` or `release`.
   */
  expect(callId: string, usedSoFar: () => UsageRecord): void {
    this.#journal.open.expect(callId, this.#holding(callId, usedSoFar));
  }

  /** Marks a call as having incurred costs: if this process is killed before `record`, its usage counts. */
  begin(callId: string, usedSoFar: () => UsageRecord): void {
    try {
      this.#journal.open.begin(callId, this.#holding(callId, usedSoFar));
    } catch (error) {
      this.#logFailure(error);
    }
  }

  /** Records the usage of a call. Must be called before its answer ends. */
  record(used: UsageRecord): void {
    const record = { ...used, ...this.#quota.settle(used.callId) };
    const { agentId, model, inputTokens, outputTokens, costUsd } = record;
    this.#options.log.info(
      `[UsageLogger] Logging: ${agentId ?? 'api'} | ${model} | ` +
        `${inputTokens}+${outputTokens} tokens | $${costUsd}`,
    );
    this.#append(record);
    this.#endOpen(used.callId);
    this.#write();
  }

  /** Records calls of the platform's own tools. Must be called before the answer of their request ends. */
  recordTools({ endpoint, tools, userId }: PlatformToolCalls): void {
    this.#append({
      ...{ callId: randomUUID(), userId, agentId: null, endpoint, at: new Date().toISOString() },
      ...{ provider: PLATFORM_TOOLS, model: PLATFORM_TOOLS },
      ...{ inputTokens: 0, outputTokens: 0, costUsd: '0' },
      tools: [...tools],
    });
    this.#write();
  }

  /** Releases the reservation of a call without usage. */
  release(callId: string): void {
    this.#quota.release(callId);
    this.#endOpen(callId);
    this.#write();
  }

  /** Resolves when all records are in the database and no advance reservations remain. */
  async flushed(): Promise<void> {
    await this.#quota.retireAll();
    this.#write();
    while (this.#writing !== undefined) await this.#writing;
  }

  /**
   * Writes everything to the database; keeps the journal if this takes longer than `timeoutMs`. Call once.
   */
  async close(timeoutMs = 5_000): Promise<void> {
    const giveUp = new AbortController();
    await Promise.race([
      this.flushed(),
      delay(timeoutMs, undefined, { signal: giveUp.signal }).catch(() => undefined),
    ]);
    giveUp.abort();
    this.#closing.abort();
    await this.#living;
    this.#journal.close();
  }

  #append(record: UsageRecord): void {
    try {
      this.#journal.append(record);
    } catch (error) {
      // It is still written from memory if this process survives.
      this.#logFailure(error);
    }
  }

  #holding(callId: string, usedSoFar: () => UsageRecord): () => UsageRecord {
    return () => ({ ...usedSoFar(), ...this.#quota.heldFor(callId) });
  }

  #write(): void {
    if (this.#closing.signal.aborted) return;
    if (this.#journal.size === 0 && !this.#quota.hasOver) return;
    this.#writing ??= this.#writeAll().finally(() => {
      this.#writing = undefined;
      this.#write();
    });
  }

  async #writeAll(): Promise<void> {
    await delay(GATHER_MS);
    const over = this.#quota.drainEnded();
    const segments = this.#journal.sealAll();
    for (const segment of segments) {
      // With the last segment, since earlier records still name these reservations.
      await this.#settleSurely(segment.records, segment === segments.at(-1) ? over : []);
      if (this.#closing.signal.aborted) return;
      try {
        await this.#journal.remove(segment);
      } catch (error) {
        this.#logFailure(error);
      }
    }
    if (segments.length === 0) await this.#settleSurely([], over);
  }

  /** Retries until the database accepts the records; a record written twice counts once. */
  async #settleSurely(records: readonly UsageRecord[], over: readonly string[]) {
    const { signal } = this.#closing;
    while (!signal.aborted) {
      try {
        return await this.#settle(records, over);
      } catch (error) {
        this.#logFailure(error);
        await pause(RETRY_MS, signal);
      }
    }
  }

  async #settle(records: readonly UsageRecord[], over: readonly string[]): Promise<void> {
    const refused = await settleUsage(this.#options.database, records, over);
    for (const { record, error } of refused) this.#setAside(JSON.stringify(record), error);
  }

  /** Moves a record that the database will never accept to a file for operators. */
  #setAside(line: string, reason: unknown): void {
    this.#logFailure(reason, { refused: line });
    try {
      this.#journal.quarantine(line);
    } catch (error) {
      this.#logFailure(error);
    }
  }

  async #recover(): Promise<void> {
    const { log } = this.#options;
    for (const segment of this.#journal.abandoned(ABANDONED_AFTER * this.#signOfLifeMs)) {
      const { records, unreadable } = segment.read();
      if (records.length > 0) await this.#settle(records, []);
      for (const line of unreadable) this.#setAside(line, new TypeError('unreadable'));
      if (records.length > 0)
        log.info({ count: records.length }, 'usage of a process that ended was recovered');
      segment.remove();
    }
  }

  async #settleAbandoned(): Promise<void> {
    const count = await settleAbandoned(this.#options.database);
    if (count > 0) this.#options.log.info({ count }, 'quota of processes that ended was released');
  }

  #retireIdle(): void {
    this.#quota.retireIdle();
    this.#write();
  }

  #regularly(everyMs: number, work: () => void | Promise<void>): Promise<void> {
    const { log } = this.#options;
    const failure = 'usage cannot be stored in time';
    return periodically({ everyMs, failure, log, work }, this.#closing.signal);
  }

  #endOpen(callId: string): void {
    try {
      this.#journal.open.end(callId);
    } catch (error) {
      this.#logFailure(error);
    }
  }

  #logFailure(error: unknown, facts: Readonly<Record<string, unknown>> = {}): void {
    this.#options.log.error(facts, `[UsageLogger] Failed to log usage: ${messageOf(error)}`);
  }
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : 'unknown');
