import { existsSync, linkSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { identify, isAlive, type ProcessIdentity } from './processes/process-identity.js';
import { StartFailure } from './failure.js';

interface Holder extends ProcessIdentity {
  readonly address: string;
}

const lockFile = (dataDir: string) => path.join(dataDir, 'start.lock');

/**
 * Makes this process the only start on its data folder.
 *
 * @param address shown to a person who starts a second one.
 * @returns the function that releases the lock.
 * @throws StartFailure when another start runs.
 */
export async function lockDataDir(dataDir: string, address: string): Promise<() => void> {
  const file = lockFile(dataDir);
  const mine = `${file}.${process.pid}`;
  const self = await identify(process.pid);
  writeFileSync(mine, JSON.stringify({ ...self, address }));
  try {
    for (let attempt = 0; attempt < 3; attempt++) {
      const holder = readHolder(file);
      if (holder && (await isAlive(holder))) throw alreadyRunning(holder);
      if (existsSync(file)) removeStale(file, mine, holder);
      if (link(mine, file)) return () => rmSync(file, { force: true });
    }
    throw new StartFailure('Another start has just begun on this data folder.');
  } finally {
    rmSync(mine, { force: true });
  }
}

/** Returns the process id of the start that runs on the data folder; undefined if none runs. */
export async function startOn(dataDir: string): Promise<number | undefined> {
  const holder = readHolder(lockFile(dataDir));
  return holder && (await isAlive(holder)) ? holder.pid : undefined;
}

/**
 * Checks that no start runs, for files written before the lock is acquired.
 *
 * @throws StartFailure when a start runs on the data folder.
 */
export async function requireUnlocked(dataDir: string): Promise<void> {
  const holder = readHolder(lockFile(dataDir));
  if (holder && (await isAlive(holder))) throw alreadyRunning(holder);
}

function readHolder(file: string): Holder | undefined {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as Holder; // Only lockDataDir writes the file, and always completely.
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

/** Removes the stale lock, unless another start has just replaced it. */
function removeStale(file: string, mine: string, stale: Holder | undefined): void {
  const aside = `${mine}.stale`;
  try {
    renameSync(file, aside);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return;
    throw error;
  }
  if (readHolder(aside)?.pid !== stale?.pid) link(aside, file);
  rmSync(aside, { force: true });
}

/** Links a file; unlike a write, a link creates a complete file or fails. */
function link(from: string, to: string): boolean {
  try {
    linkSync(from, to);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  }
}

function alreadyRunning({ pid, address }: Holder): StartFailure {
  return new StartFailure(
    `The platform already runs here: process ${pid}, at ${address}. Stop it with Ctrl-C, or set DATA_DIR to another folder.`,
  );
}
