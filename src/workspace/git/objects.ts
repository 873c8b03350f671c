import type { Stats } from 'node:fs';
import { setBounded } from '../../lib/bounded-map.js';
import { allSettledOrThrow } from '../../lib/when-all-ended.js';
import type { Folder } from '../files/folder.js';
import { isSettled, stateOf } from './file-state.js';
import { UnsupportedRepositoryError } from './unsupported.js';

/** Maximum number of folders of objects; git itself creates 258. */
const MAX_FOLDERS = 1_000;
/** Maximum number of folders checked at a time: each one is open during its check. */
const FOLDERS_AT_ONCE = 64;

/** Checks that a repository has all its objects, without links. @throws UnsupportedRepositoryError */
export async function checkObjects(git: Folder, signal: AbortSignal): Promise<void> {
  await git.within(['objects'], async (objects) => {
    const folders = await foldersIn(objects, signal);
    const stats = await allSettledOrThrow(folders.map((name) => objects.stat(name)));
    const unknown = folders.filter((name, index) => !isKnown(name, stats[index]));
    for (let at = 0; at < unknown.length; at += FOLDERS_AT_ONCE) {
      const some = unknown.slice(at, at + FOLDERS_AT_ONCE);
      await allSettledOrThrow(some.map((name) => checkFolder(objects, name, signal)));
    }
  });
}

async function foldersIn(objects: Folder, signal: AbortSignal): Promise<readonly string[]> {
  const state = await settledState(objects);
  const known = state !== undefined && LISTED.get(state);
  if (known) return known;
  await checkPlain(objects, signal);
  const folders: string[] = [];
  for await (const { kind, name } of objects.entries()) {
    signal.throwIfAborted();
    if (kind === 'folder') folders.push(name);
    if (folders.length > MAX_FOLDERS) {
      throw new UnsupportedRepositoryError('it has too many object folders');
    }
  }
  if (state !== undefined) setBounded(LISTED, state, folders, MAX_LISTED);
  return folders;
}

async function checkFolder(objects: Folder, name: string, signal: AbortSignal): Promise<void> {
  await objects.within([name], async (folder) => {
    const state = await settledState(folder);
    await checkPlain(folder, signal);
    if (name === 'info' && (await folder.stat('alternates'))) {
      throw new UnsupportedRepositoryError('it borrows objects from another repository');
    }
    if (state !== undefined) setBounded(PLAIN, `${name} ${state}`, true, MAX_PLAIN);
  });
}

async function checkPlain(folder: Folder, signal: AbortSignal): Promise<void> {
  if (!(await folder.isPlain(signal))) {
    throw new UnsupportedRepositoryError('it has linked objects');
  }
}

/**
 * Folders found to contain only files and folders, by name and state. The name is in the key because the
 * check depends on it, and a rename leaves the state unchanged on some file systems.
 */
const PLAIN = new Map<string, true>();
/** Enough for several repositories with all 256 object folders. */
const MAX_PLAIN = 4_096;

/** Names of the folders in an object folder, by its state. */
const LISTED = new Map<string, readonly string[]>();
const MAX_LISTED = 16;

const isKnown = (name: string, stats: Stats | undefined): boolean =>
  stats?.isDirectory() === true && PLAIN.has(`${name} ${stateOf(stats)}`);

async function settledState(folder: Folder): Promise<string | undefined> {
  const stats = await folder.self();
  return isSettled(stats) ? stateOf(stats) : undefined;
}
