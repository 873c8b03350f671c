import type { Logger } from 'pino';
import type { Database } from '../database/database.js';
import { recordAudit } from './audit.js';

/** Lines that one process adds in a minute at most, whoever is refused and however often. */
const LINES_A_MINUTE = 20;
const MINUTE_MS = 60_000;

/** What somebody was refused who has not said who they are. */
export interface Refusal {
  readonly action: 'sign-in.failed' | 'key.refused';
  /** What was asked for: an e-mail address, a listener. */
  readonly subject: string;
  readonly address: string;
}

interface Counted extends Refusal {
  count: number;
  first: Date;
  last: Date;
}

/** In the place of addresses and subjects beyond the bound. */
const OTHERS = '(others)';

/**
 * Tells the audit log of refusals, a minute's together: a line for each address and subject with how
 * often, and one of each kind for all beyond the bound. So no flood fills the log.
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

  /** Writes what was counted; what the database does not take is counted on. */
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
      this.#log.warn({ err: error }, 'refusals are not in the audit log yet');
      for (const each of counted) this.#add(each);
      this.#timer ??= setTimeout(() => void this.flush(), MINUTE_MS).unref();
    }
  }

  /** Also what comes back from a database that did not take it keeps within the bound. */
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
