import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { jittered } from '../jitter.js';
import { pause } from '../pause.js';

/** Tables that tell of their rows (`migrations/016-row-changes.ts`). */
export type ToldTable =
  | 'mails'
  | 'risc_events'
  | 'account_deletions'
  | 'payments'
  | 'clones'
  | 'royalty_splits'
  | 'payment_sessions';

const CONNECT_TIMEOUT_MS = 5_000;
const ANSWER_TIMEOUT_MS = 5_000;

/** Between two looks at whether the connection is still one, in milliseconds. */
const CHECK_MS = 15_000;

/** From the end of a connection to the next try, in milliseconds. */
const RECONNECT_MS = 1_000;

/**
 * What is heard of one table. It says when to look, never what there is, and may be missed: whoever
 * waits for something looks from time to time all the same.
 */
export class TableChanges {
  #count = 0;
  readonly #waiting = new Set<() => void>();

  /** How often something was heard until now. */
  get count(): number {
    return this.#count;
  }

  /**
   * Waits until something was heard since the count was so much, or for so many milliseconds, or until
   * the signal aborts, which is no failure.
   */
  async after(count: number, ms: number, signal: AbortSignal): Promise<void> {
    if (this.#count !== count) return;
    const heard = new AbortController();
    const stop = () => heard.abort();
    this.#waiting.add(stop);
    signal.addEventListener('abort', stop, { once: true });
    try {
      if (!signal.aborted) await pause(ms, heard.signal);
    } finally {
      this.#waiting.delete(stop);
      signal.removeEventListener('abort', stop);
    }
  }

  /** Has everybody look who waits. */
  tell(): void {
    this.#count += 1;
    for (const stop of this.#waiting) stop();
  }
}

/** Hears of rows of tables, on a connection of its own, as long as there is somebody who asks. */
export class RowChanges {
  readonly #url: string;
  readonly #tables = new Map<string, TableChanges>();
  readonly #closing = new AbortController();
  #listening: Promise<void> | undefined;

  constructor(url: string) {
    this.#url = url;
  }

  of(table: ToldTable): TableChanges {
    const found = this.#tables.get(table) ?? new TableChanges();
    this.#tables.set(table, found);
    if (!this.#closing.signal.aborted) this.#listening ??= this.#listen(this.#closing.signal);
    return found;
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#listening;
  }

  async #listen(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      // Without it everybody looks from time to time, and says what is wrong with the database.
      await this.#hear(signal).catch(() => undefined);
      await pause(jittered(RECONNECT_MS), signal);
    }
  }

  /** Until the connection breaks, which need not be seen on it, or the signal aborts. */
  async #hear(signal: AbortSignal): Promise<void> {
    const client = new pg.Client({
      connectionString: this.#url,
      application_name: 'agent-platform-service row changes',
      connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
      query_timeout: ANSWER_TIMEOUT_MS,
      keepAlive: true,
    });
    const over = new AbortController();
    const end = () => over.abort();
    client.on('error', end);
    client.on('end', end);
    client.on('notification', ({ payload = '' }) => this.#tables.get(payload)?.tell());
    signal.addEventListener('abort', end, { once: true });
    try {
      await client.connect();
      await client.query('LISTEN rows');
      // What there was to be heard while nobody listened.
      for (const table of this.#tables.values()) table.tell();
      while (!over.signal.aborted) {
        await pause(jittered(CHECK_MS), over.signal);
        if (!over.signal.aborted) await client.query('SELECT 1');
      }
    } finally {
      signal.removeEventListener('abort', end);
      // Where nothing answers any more, nobody waits for it; and it holds open no process that is to end.
      await Promise.race([client.end(), delay(ANSWER_TIMEOUT_MS, undefined, { ref: false })]);
    }
  }
}
