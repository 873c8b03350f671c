import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { jittered } from '../../lib/jitter.js';
import { pause } from '../../lib/pause.js';

/** Tables that notify of changed rows (`migrations/016-row-changes.ts` and later ones). */
export type AnnouncedTable =
  | 'mails'
  | 'risc_events'
  | 'account_deletions'
  | 'payments'
  | 'clones'
  | 'royalty_splits'
  | 'payment_sessions'
  | 'processor_events'
  | 'bus_messages'
  | 'bus_signatures'
  | 'agent_verifications'
  | 'swarms'
  | 'scheduled_tasks'
  | 'scheduled_task_runs'
  | 'agent_emails'
  | 'videos';

const CONNECT_TIMEOUT_MS = 5_000;
const ANSWER_TIMEOUT_MS = 5_000;

/** Milliseconds between two checks of the connection. */
const CHECK_MS = 15_000;

/** Milliseconds from the end of a connection to the next attempt. */
const RECONNECT_MS = 1_000;

/** Notifications of one table. They report only that rows changed, and may be lost: callers must also poll. */
export class TableChanges {
  #count = 0;
  readonly #waiting = new Set<() => void>();

  /** Returns the number of notifications so far. */
  get count(): number {
    return this.#count;
  }

  /** Waits until the notifications differ from `count`, the time is over, or the signal aborts. */
  async after(count: number, ms: number, signal: AbortSignal): Promise<void> {
    if (this.#count !== count) return;
    const received = new AbortController();
    const stop = () => received.abort();
    this.#waiting.add(stop);
    signal.addEventListener('abort', stop, { once: true });
    try {
      if (!signal.aborted) await pause(ms, received.signal);
    } finally {
      this.#waiting.delete(stop);
      signal.removeEventListener('abort', stop);
    }
  }

  notify(): void {
    this.#count += 1;
    for (const stop of this.#waiting) stop();
  }
}

/** Receives notifications of rows, on a connection of its own that is opened at the first request. */
export class RowChanges {
  readonly #url: string;
  readonly #tables = new Map<string, TableChanges>();
  readonly #closing = new AbortController();
  #listening: Promise<void> | undefined;

  constructor(url: string) {
    this.#url = url;
  }

  of(table: AnnouncedTable): TableChanges {
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
      // Errors are ignored: without notifications callers poll, and report database failures themselves.
      await this.#listenOnce(signal).catch(() => undefined);
      await pause(jittered(RECONNECT_MS), signal);
    }
  }

  /** Listens until the connection breaks, which may go unnoticed, or the signal aborts. */
  async #listenOnce(signal: AbortSignal): Promise<void> {
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
    client.on('notification', ({ payload = '' }) => this.#tables.get(payload)?.notify());
    signal.addEventListener('abort', end, { once: true });
    try {
      await client.connect();
      await client.query('LISTEN rows');
      // Makes up for notifications lost while not listening.
      for (const table of this.#tables.values()) table.notify();
      while (!over.signal.aborted) {
        await pause(jittered(CHECK_MS), over.signal);
        if (!over.signal.aborted) await client.query('SELECT 1');
      }
    } finally {
      signal.removeEventListener('abort', end);
      // The timeout covers a server that no longer answers, without keeping the process alive.
      await Promise.race([client.end(), delay(ANSWER_TIMEOUT_MS, undefined, { ref: false })]);
    }
  }
}
