import type { Logger } from 'pino';
import type { Database } from '../database/database.js';
import { recordAudit } from './audit.js';

/** Maximum number of lines that one process adds per minute, across all addresses and subjects. */
const LINES_A_MINUTE = 20;
const MINUTE_MS = 60_000;

/** A refused attempt of an unidentified client. */
export interface Refusal {
  readonly action: 'sign-in.failed' | 'key.refused';
  /** The requested subject: an e-mail address, a listener. */
  readonly subject: string;
  readonly address: string;
}

interface Counted extends Refusal {
  count: number;
  first: Date;
  last: Date;
}

/** Placeholder for addresses and subjects beyond the bound. */
const OTHERS = '(others)';

/**
 * Batches refusals into the audit log every minute: a line with a count for each address and subject, and
 * a line of each kind for all beyond the bound. The bound keeps a flood from filling the log.
 */
export class Refusals {
  readonly #database: Database;
  readonly #log: Logger;
  #counted = new Map<string, Counted>();
  #timer: NodeJS.Timeout | undefined;

  constructor(database: Database, log: Logger) {
    this.#database = database;
    this.#log = log;
  }

  note(refusal: Refusal): void {
    this.#add({ ...refusal, count: 1, first: new Date(), last: new Date() });
    this.#timer ??= setTimeout(() => void this.flush(), MINUTE_MS).unref();
  }

  /** Writes the counted refusals; if the database fails, keeps counting them. */
  async flush(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const counted = [...this.#counted.values()];
    this.#counted = new Map();
    try {
      await this.#database.asPlatform().transaction(async (db) => {
        for (const { action, subject, address, count, first, last } of counted) {
          const detail = { address, count, first, last };
          await recordAudit(db, { actor: 'anonymous', action, subject, detail });
        }
      });
    } catch (error) {
      this.#log.warn({ err: error }, 'audit log write of refusals failed, will retry');
      for (const each of counted) this.#add(each);
      this.#timer ??= setTimeout(() => void this.flush(), MINUTE_MS).unref();
    }
  }

  /** Adds a refusal within the bound; refusals returned after a failed write count too. */
  #add(refusal: Counted): void {
    const isOneOfMany = !this.#counted.has(keyOf(refusal)) && this.#counted.size >= LINES_A_MINUTE;
    const added = isOneOfMany ? { ...refusal, subject: OTHERS, address: OTHERS } : refusal;
    const known = this.#counted.get(keyOf(added));
    if (known === undefined) {
      this.#counted.set(keyOf(added), added);
      return;
    }
    known.count += added.count;
    if (added.first < known.first) known.first = added.first;
    if (added.last > known.last) known.last = added.last;
  }
}

const keyOf = ({ action, subject, address }: Refusal): string =>
  JSON.stringify([action, subject, address]);
