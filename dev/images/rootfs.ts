import { createReadStream } from 'node:fs';
import { lstat, readdir, readlink, realpath, stat } from 'node:fs/promises';
import path from 'node:path';
import type { Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { pack, type Header as TarHeader, type Pack } from 'tar-stream';

interface Owner {
  readonly uid: number;
  readonly gid: number;
}

const ROOT: Owner = { uid: 0, gid: 0 };

/** A tar header before writing; the name is the entry's key. */
type Header = Partial<TarHeader> & Pick<TarHeader, 'name'>;

type Entry =
  | { readonly header: Header; readonly source: string; readonly identity: string }
  | { readonly header: Header; readonly content?: string };

/** The time of all entries, so that equal content gives equal archives. */
const EPOCH = new Date(0);

/**
 * The files of an image, collected from the host and written as one tar archive. Owners and modes exist
 * only in the archive, so no root rights are needed.
 */
export class Rootfs {
  readonly #entries = new Map<string, Entry>();

  addDirectory(target: string, mode = 0o755, owner: Owner = ROOT): void {
    this.#addParents(target);
    this.#set(target, { header: { name: '', type: 'directory', mode, ...owner } });
  }

  addText(target: string, content: string, mode = 0o644, owner: Owner = ROOT): void {
    this.#addParents(target);
    this.#set(target, { header: { name: '', mode, ...owner }, content });
  }

  addSymlink(target: string, linkname: string): void {
    this.#addParents(target);
    this.#set(target, { header: { name: '', type: 'symlink', linkname, ...ROOT } });
  }

  has(target: string): boolean {
    return this.#entries.has(target);
  }

  /** Adds a host file's content, following links; hard links between host files are kept. */
  async addFile(target: string, source: string): Promise<void> {
    this.#addParents(target);
    const real = await realpath(source);
    const { size, mode, dev, ino } = await stat(real);
    const permissions = mode & 0o111 ? 0o755 : 0o644;
    this.#set(target, {
      header: { name: '', size, mode: permissions, ...ROOT },
      source: real,
      identity: `${dev}:${ino}`,
    });
  }

  /** Adds a host folder with its content, except entries named by `skip`. Symbolic links stay links. */
  async addTree(
    target: string,
    source: string,
    skip: (relativePath: string) => boolean = () => false,
    relativePath = '',
  ): Promise<void> {
    this.addDirectory(target);
    const names = (await readdir(source)).sort();
    for (const name of names) {
      const relative = path.posix.join(relativePath, name);
      if (skip(relative)) continue;
      const from = path.join(source, name);
      const to = path.posix.join(target, name);
      const info = await lstat(from);
      if (info.isDirectory()) await this.addTree(to, from, skip, relative);
      else if (info.isSymbolicLink()) this.addSymlink(to, await readlink(from));
      else if (info.isFile()) await this.addFile(to, from);
    }
  }

  /** Writes the archive in the order of addition, so folders come before their content. */
  async writeTo(destination: Writable): Promise<void> {
    const archive = pack();
    const written = pipeline(archive, destination);
    // A failure of the destination also ends the archive; `written` rejects with it.
    await Promise.all([this.#fill(archive), written]);
  }

  async #fill(archive: Pack): Promise<void> {
    const first = new Map<string, string>();
    for (const [target, entry] of this.#entries) {
      const header = { ...entry.header, name: target.slice(1), mtime: EPOCH };
      if (!('source' in entry)) {
        archive.entry(header, entry.content ?? '');
        continue;
      }
      const linkname = first.get(entry.identity);
      if (linkname !== undefined) {
        archive.entry({ ...header, size: 0, type: 'link', linkname });
        continue;
      }
      first.set(entry.identity, header.name);
      await pipeline(createReadStream(entry.source), archive.entry(header));
    }
    archive.finalize();
  }

  #addParents(target: string): void {
    const parent = path.posix.dirname(target);
    if (parent === '/' || this.#entries.has(parent)) return;
    this.addDirectory(parent);
  }

  #set(target: string, entry: Entry): void {
    this.#entries.set(target, entry);
  }
}
