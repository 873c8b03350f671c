import { mkdir, open, readdir, readFile, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import type { Logger } from 'pino';
import { FairLimiter } from '../../lib/fair-limiter.js';
import { tryParseJson } from '../../lib/json.js';
import { journalEntry, type JournalEntry } from './journal-entry.js';

/** Maximum number of agents of one host; the local repair ignores any more. */
const MAX_ENTRIES = 10_000;

/** Maximum number of bytes of a file. An entry has about 1 kB, and 20 kB after hours without a supervisor. */
const MAX_FILE_BYTES = 256 * 1024;

const SUFFIX = '.json';

/**
 * The agents that should run on this host, one file for each. Writes are atomic and survive a restart of
 * process and machine. An agent whose file cannot be written or read is unknown.
 */
export class HostJournal {
  readonly #entries = new Map<string, JournalEntry>();
  readonly #writing = new Set<Promise<void>>();
  /** One agent's writes follow each other. */
  readonly #limiter = new FairLimiter({ atOnce: 8, perOwner: 1 });
  readonly #folder: string;
  readonly #log: Logger;

  private constructor(folder: string, log: Logger) {
    this.#folder = folder;
    this.#log = log;
  }

  /** Loads the entries of an earlier process. If the folder is not writable, entries stay in memory only. */
  static async open(folder: string, log: Logger): Promise<HostJournal> {
    const journal = new HostJournal(folder, log);
    try {
      await mkdir(folder, { recursive: true, mode: 0o700 });
      await journal.#read();
    } catch (error) {
      log.warn({ err: error, folder }, 'the journal cannot be stored on disk');
    }
    return journal;
  }

  get(agentId: string): JournalEntry | undefined {
    return this.#entries.get(agentId);
  }

  entries(): JournalEntry[] {
    return [...this.#entries.values()];
  }

  /** Resolves when the entry is on disk or, if writing fails, the outdated file is removed. */
  async set(entry: JournalEntry): Promise<void> {
    const { agentId } = entry;
    if (!this.#entries.has(agentId) && this.#entries.size >= MAX_ENTRIES) return;
    this.#entries.set(agentId, entry);
    await this.#write(agentId);
  }

  async delete(agentId: string): Promise<void> {
    if (this.#entries.delete(agentId)) await this.#write(agentId);
  }

  async settled(): Promise<void> {
    await Promise.all(this.#writing);
  }

  #write(agentId: string): Promise<void> {
    const writing = this.#limiter
      .run({ owner: agentId }, () => this.#writeNow(agentId))
      .finally(() => this.#writing.delete(writing));
    this.#writing.add(writing);
    return writing;
  }

  async #writeNow(agentId: string): Promise<void> {
    const entry = this.#entries.get(agentId);
    const file = path.join(this.#folder, `${agentId}${SUFFIX}`);
    try {
      if (entry) await replaceFile(file, JSON.stringify(entry));
      else await rm(file, { force: true });
    } catch (error) {
      this.#log.warn({ err: error, agentId }, 'writing to the journal failed');
      await rm(file, { force: true }).catch((err: unknown) => {
        this.#log.error({ err, agentId }, 'the journal holds an outdated entry');
      });
    }
  }

  async #read(): Promise<void> {
    for (const name of await readdir(this.#folder)) {
      // Files without this suffix are leftovers of writes that a crash interrupted.
      if (!name.endsWith(SUFFIX)) continue;
      const file = path.join(this.#folder, name);
      const text = await readFile(file, 'utf8').catch(() => ''); // counts as a torn file
      const { data } = journalEntry.safeParse(tryParseJson(text));
      const isOwn = data !== undefined && name === `${data.agentId}${SUFFIX}`;
      if (!isOwn) this.#log.warn({ file }, 'a journal file cannot be read');
      else if (this.#entries.size < MAX_ENTRIES) this.#entries.set(data.agentId, data);
    }
  }
}

/** Replaces a file durably: after a power failure it has the old or the new text. */
async function replaceFile(file: string, text: string): Promise<void> {
  if (text.length > MAX_FILE_BYTES) throw new RangeError('a journal entry is too long');
  const fresh = `${file}.new`;
  const handle = await open(fresh, 'w', 0o600);
  try {
    await handle.writeFile(text);
    await handle.sync();
  } finally {
    await handle.close();
  }
  await rename(fresh, file);
  const folder = await open(path.dirname(file), 'r');
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}
