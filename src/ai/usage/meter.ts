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
import type { UsageRecord } from './usage-record.js';

/**
 * Milliseconds in which records gather before they are written together. While they are, calls of
 * the same users wait with their reservations: seldom is better than little at a time.
 */
const GATHER_MS = 100;
/** Between two attempts while the database is out. */
const RETRY_MS = 1_000;
/** Records that wait for a database that is out. Beyond, no call is begun any more. */
const MAX_WAITING = 100_000;
/** Between two notes of what calls under way have used. */
const REFRESH_MS = 1_000;
/** Between two looks for what is held by processes that died. */
const SETTLE_MS = 60_000;
/** What is held ahead for somebody who does not call for so long is given back. */
const IDLE_MS = 5_000;
/** A file that was not touched for so many signs of life has nobody any more. */
const ABANDONED_AFTER = 4;

export interface MeterOptions {
  readonly database: Database;
  /** Where the journal is; survives this process. */
  readonly folder: string;
  readonly log: Logger;
  /** For tests. */
  readonly signOfLifeMs?: number;
}

/**
 * Counts what AI calls use: holds their quota before them, and records after them what they used,
 * without waiting for the database and without losing a record when this process is killed.
 */
export class Meter {
  readonly #options: MeterOptions;
  readonly #quota: Quota;
  readonly #journal: UsageJournal;
  readonly #signOfLifeMs: number;
  #writing: Promise<void> | undefined;
  readonly #closing = new AbortController();
  readonly #living: Promise<unknown>;

  /** @throws what the file system refuses: without a journal no call is answered. */
  constructor(options: MeterOptions) {
    this.#options = options;
    this.#quota = new Quota(options.database);
    this.#journal = new UsageJournal(options.folder);
    this.#signOfLifeMs = options.signOfLifeMs ?? SIGN_OF_LIFE_MS;
    // Each on its own: a database that is out must not make the journal look abandoned.
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
   * Holds what a call may use. Whoever calls this then calls `record` or `release`.
   *
   * @throws QuotaExceededError; UnavailableError when usage cannot be recorded.
   */
  async reserve(claim: TokenClaim): Promise<void> {
    if (this.#journal.size >= MAX_WAITING) {
      throw new UnavailableError('Usage cannot be recorded: the database does not answer');
    }
    await this.#quota.reserve(claim);
  }

  /**
   * The call is being asked for. If it takes a while, and this process is killed before it is recorded
   * or released, what is told here counts.
   */
  expect(callId: string, usedSoFar: () => UsageRecord): void {
    this.#journal.open.expect(callId, this.#holding(callId, usedSoFar));
  }

  /**
   * The call has cost something, and will cost more: if this process is killed before it is
   * recorded, what it has used so far counts, to the second.
   */
  begin(callId: string, usedSoFar: () => UsageRecord): void {
    try {
      this.#journal.open.begin(callId, this.#holding(callId, usedSoFar));
    } catch (error) {
      this.#logFailure(error);
    }
  }

  /** Records what a call used. To be called before its answer ends. */
  record(used: UsageRecord): void {
    const record = { ...used, ...this.#quota.settle(used.callId) };
    const { agentId, model, inputTokens, outputTokens, costUsd } = record;
    this.#options.log.info(
      `[UsageLogger] Logging: ${agentId ?? 'api'} | ${model} | ` +
        `${inputTokens}+${outputTokens} tokens | $${costUsd}`,
    );
    try {
      this.#journal.append(record);
    } catch (error) {
      // It is still written from memory, if this process lives.
      this.#logFailure(error);
    }
    this.#endOpen(used.callId);
    this.#write();
  }

  /** The call came to nothing: what was held for it is free. */
  release(callId: string): void {
    this.#quota.release(callId);
    this.#endOpen(callId);
    this.#write();
  }

  /** Resolves when everything recorded so far is in the database, and nothing is held ahead. */
  async flushed(): Promise<void> {
    await this.#quota.retireAll();
    this.#write();
    while (this.#writing !== undefined) await this.#writing;
  }

  /**
   * Brings everything into the database; leaves the journal if it cannot within `timeoutMs`. To be
   * called once.
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

  /** What a call has used so far, with what it holds then. */
  #holding(callId: string, usedSoFar: () => UsageRecord): () => UsageRecord {
    return () => ({ ...usedSoFar(), ...this.#quota.heldFor(callId) });
  }

  /** If there is anything to write. */
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
    const over = this.#quota.takeOver();
    const segments = this.#journal.sealAll();
    for (const segment of segments) {
      // With the last: until then records name them.
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

  /** Until the database takes it: a record that is given twice counts once. */
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

  /** For what the database will never take. */
  #setAside(line: string, reason: unknown): void {
    this.#logFailure(reason, { refused: line });
    try {
      this.#journal.setAside(line);
    } catch (error) {
      this.#logFailure(error);
    }
  }

  /** Takes over what processes left that were killed. */
  async #recover(): Promise<void> {
    const { log } = this.#options;
    for (const segment of this.#journal.abandoned(ABANDONED_AFTER * this.#signOfLifeMs)) {
      const { records, unreadable } = segment.read();
      if (records.length > 0) await this.#settle(records, []);
      for (const line of unreadable) this.#setAside(line, new TypeError('unreadable'));
      if (records.length > 0) log.info({ count: records.length }, 'usage of a process that ended');
      segment.remove();
    }
  }

  /** Gives back what processes held that were killed. */
  async #settleAbandoned(): Promise<void> {
    const count = await settleAbandoned(this.#options.database);
    if (count > 0) this.#options.log.info({ count }, 'quota of processes that ended');
  }

  #retireIdle(): void {
    this.#quota.retireIdle();
    this.#write();
  }

  #regularly(everyMs: number, work: () => void | Promise<void>): Promise<void> {
    const { log } = this.#options;
    const failure = 'usage is not kept up';
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
