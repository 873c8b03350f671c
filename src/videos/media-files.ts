import { randomUUID } from 'node:crypto';
import { mkdir, open, readdir, rename, rm, stat, type FileHandle } from 'node:fs/promises';
import path from 'node:path';

/** Suffix of files that are being written. */
const PARTIAL = '.part';

/** Milliseconds after its last byte from which another id's partial file counts as abandoned. */
const ABANDONED_MS = 60 * 60_000;

/** Files in the operator's folder of media, each named by the id of its row. Several processes share the folder. */
export class MediaFiles {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
  }

  /**
   * Writes a file under a temporary name and renames it, so that no reader finds a part. Returns its bytes; undefined
   * if it was not accepted.
   * @param body may throw, which leaves no file behind, like `accepts`.
   * @param accepts is called before the file is renamed.
   */
  async write(
    id: string,
    body: AsyncIterable<Uint8Array>,
    accepts: (bytes: number) => Promise<boolean>,
  ): Promise<number | undefined> {
    const target = this.#path(id);
    await mkdir(this.#folder, { recursive: true, mode: 0o750 });
    const partial = `${target}.${randomUUID()}${PARTIAL}`;
    const file = await open(partial, 'wx', 0o640);
    try {
      let bytes = 0;
      try {
        for await (const piece of body) {
          await file.writeFile(piece);
          bytes += piece.length;
        }
        await file.sync();
      } finally {
        await file.close();
      }
      if (await accepts(bytes)) {
        await rename(partial, target);
        return bytes;
      }
      await rm(partial, { force: true });
      return undefined;
    } catch (error) {
      await rm(partial, { force: true });
      throw error;
    }
  }

  /** Opens a file for reading; undefined if it was deleted. The caller closes it. */
  async open(id: string): Promise<FileHandle | undefined> {
    try {
      return await open(this.#path(id), 'r');
    } catch (error) {
      if (isMissing(error)) return undefined;
      throw error;
    }
  }

  /** Removes a file, also one that is absent. */
  async remove(id: string): Promise<void> {
    await rm(this.#path(id), { force: true });
  }

  /** Removes partial files whose process was killed: those of this id, which has one writer at a time, and old ones. */
  async removeAbandoned(id: string): Promise<void> {
    const own = `${path.basename(this.#path(id))}.`;
    const names = await readdir(this.#folder).catch((error: unknown) => {
      if (isMissing(error)) return [];
      throw error;
    });
    for (const name of names.filter((each) => each.endsWith(PARTIAL))) {
      const partial = path.join(this.#folder, name);
      const found = await stat(partial).catch(() => undefined);
      const isOld = found && Date.now() - found.mtimeMs > ABANDONED_MS;
      if (isOld || name.startsWith(own)) await rm(partial, { force: true });
    }
  }

  #path(id: string): string {
    if (!/^[\da-f-]{36}$/.test(id)) throw new TypeError('not the id of a file');
    return path.join(this.#folder, id);
  }
}

const isMissing = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && error.code === 'ENOENT';
