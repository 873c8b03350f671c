import { existsSync } from 'node:fs';
import { copyFile, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { tryParseJson } from '../../src/lib/json.js';

const KEEP_EVERY_MS = 500;

/**
 * The file that anvil writes its state to once a second. It does so in place: whoever kills it in the
 * middle of that leaves a part of a file, with which it does not start. So the last whole one is kept
 * beside it.
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

  /** Makes the folder, and puts a whole file in the place of a part of one. */
  async restore(): Promise<void> {
    await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    if (!existsSync(this.file) || isWhole(await readFile(this.file))) return;
    if (existsSync(this.#kept)) await copyFile(this.#kept, this.file);
    else await rm(this.file); // ended before it had written any
  }

  /** Keeps the file as it is now, if it is whole and another one. */
  async keep(): Promise<void> {
    if (!existsSync(this.file)) return;
    const now = await readFile(this.file);
    if (this.#last?.equals(now) || !isWhole(now)) return;
    await writeFile(`${this.#kept}.new`, now, { mode: 0o600 });
    await rename(`${this.#kept}.new`, this.#kept);
    this.#last = now;
  }

  /** Keeps it from now on. @returns what ends that. */
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
