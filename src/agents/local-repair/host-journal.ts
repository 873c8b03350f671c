import { mkdir, open, readdir, readFile, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import pLimit from 'p-limit';
import type { Logger } from 'pino';
import { tryParseJson } from '../../lib/json.js';
import { journalEntry, type JournalEntry } from './journal-entry.js';

/** As many agents as one host may have; what goes beyond is not known, and so left alone. */
const MAX_ENTRIES = 10_000;

/** An entry is a kilobyte, and 20 when nobody has taken anything in for hours. */
const MAX_FILE_BYTES = 256 * 1024;

const SUFFIX = '.json';

/**
 * What should run on this host, in a file for each agent: each is written whole or not at all, and
 * outlives process and machine. An agent of which nothing can be written or read is not known.
 */
export class HostJournal {
  readonly #entries = new Map<string, JournalEntry>();
  readonly #writing = new Map<string, Promise<void>>();
  readonly #limit = pLimit(8);
  readonly #folder: string;
  readonly #log: Logger;

  private constructor(folder: string, log: Logger) {
    this.#folder = folder;
    this.#log = log;
  }

  /** With what an earlier process has left. Where nothing can be written it is kept in memory alone. */
  static async open(folder: string, log: Logger): Promise<HostJournal> {
    const journal = new HostJournal(folder, log);
    try {
      await mkdir(folder, { recursive: true, mode: 0o700 });
      await journal.#read();
    } catch (error) {
      log.warn({ err: error, folder }, 'the journal of what should run here cannot be kept');
    }
    return journal;
  }

  get(agentId: string): JournalEntry | undefined {
    return this.#entries.get(agentId);
  }

  entries(): JournalEntry[] {
    return [...this.#entries.values()];
  }

  /** Resolves when it is on the disk, or cannot be: then no file is left that says otherwise. */
  async set(entry: JournalEntry): Promise<void> {
    const { agentId } = entry;
    if (!this.#entries.has(agentId) && this.#entries.size >= MAX_ENTRIES) return;
    this.#entries.set(agentId, entry);
    await this.#write(agentId);
  }

  async delete(agentId: string): Promise<void> {
    if (this.#entries.delete(agentId)) await this.#write(agentId);
  }

  /** Resolves when nothing is being written. */
  async settled(): Promise<void> {
    await Promise.all(this.#writing.values());
  }

  /** Writes what is known of the agent by the time that its earlier writes have ended. */
  #write(agentId: string): Promise<void> {
    const before = this.#writing.get(agentId) ?? Promise.resolve();
    const writing = before
      .then(() => this.#limit(() => this.#writeNow(agentId)))
      .finally(() => {
        if (this.#writing.get(agentId) === writing) this.#writing.delete(agentId);
      });
    this.#writing.set(agentId, writing);
    return writing;
  }

  async #writeNow(agentId: string): Promise<void> {
    const entry = this.#entries.get(agentId);
    const file = path.join(this.#folder, `${agentId}${SUFFIX}`);
    try {
      if (entry) await replaceFile(file, JSON.stringify(entry));
      else await rm(file, { force: true });
    } catch (error) {
      this.#log.warn({ err: error, agentId }, 'the journal of what should run here is not written');
      await rm(file, { force: true }).catch((err: unknown) => {
        this.#log.error({ err, agentId }, 'the journal says what is not so any more');
      });
    }
  }

  async #read(): Promise<void> {
    for (const name of await readdir(this.#folder)) {
      // The others are what a process was just writing when it was killed.
      if (!name.endsWith(SUFFIX)) continue;
      const file = path.join(this.#folder, name);
      const text = await readFile(file, 'utf8').catch(() => ''); // as a torn one
      const { data } = journalEntry.safeParse(tryParseJson(text));
      const isOwn = data !== undefined && name === `${data.agentId}${SUFFIX}`;
      if (!isOwn) this.#log.warn({ file }, 'a file of the journal cannot be read');
      else if (this.#entries.size < MAX_ENTRIES) this.#entries.set(data.agentId, data);
    }
  }
}

/** The old text or the new one is there at any moment, also when the power goes. */
async function replaceFile(file: string, text: string): Promise<void> {
  if (text.length > MAX_FILE_BYTES) throw new RangeError('an entry of the journal is too long');
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
