import { existsSync } from 'node:fs';
import { copyFile, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { tryParseJson } from '../../src/lib/json.js';

const KEEP_EVERY_MS = 500;

/**
 * The file to which anvil writes its state once a second, in place: a kill during a write leaves a
 * truncated file, with which anvil does not start. So the last complete file is kept next to it.
 */
export class ChainState {
  readonly file: string;
  readonly #kept: string;
  #last: Buffer | undefined;

  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;

    this.file = path.join(folder, 'state.json');
    this.#kept = path.join(folder, 'state.kept.json');
  }

  /** Makes the folder, and replaces a truncated file with the last complete one. */
  async restore(): Promise<void> {
    await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    if (!existsSync(this.file) || isWhole(await readFile(this.file))) return;
    if (existsSync(this.#kept)) await copyFile(this.#kept, this.file);
    else await rm(this.file); // anvil ended before it had written any state.
  }

  /** Copies the current file, if it is complete and has changed. */
  async keep(): Promise<void> {
    if (!existsSync(this.file)) return;
    const now = await readFile(this.file);
    if (this.#last?.equals(now) || !isWhole(now)) return;
    await writeFile(`${this.#kept}.new`, now, { mode: 0o600 });
    await rename(`${this.#kept}.new`, this.#kept);
    this.#last = now;
  }

  /** Copies the file regularly from now on. @returns the function that stops the copying. */
  keepOn(onError: (error: unknown) => void): () => void {
    let busy = false;
    const timer = setInterval(() => {
      if (busy) return;
      busy = true;
      void this.keep()
        .catch(onError)
        .finally(() => (busy = false));
    }, KEEP_EVERY_MS);
    timer.unref();
    return () => clearInterval(timer);
  }
}

const isWhole = (content: Buffer): boolean => tryParseJson(content.toString()) !== undefined;
