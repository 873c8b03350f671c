import { existsSync } from 'node:fs';
import { readFile, rm } from 'node:fs/promises';
import path from 'node:path';
import { run } from '../processes/run.js';
import { lastLines } from '../processes/process.js';
import { engineFolders } from './user-namespaces.js';

const LOG_LINES = 200;

/** The place where dockerd 20.10 crashes at every start, if it was killed while it removed a network. */
const UNREADABLE = 'libnetwork.(*controller).reservePools';

/** Reports whether the engine could not start because of its stored networks. */
export function cannotReadNetworks(logFile: string): boolean {
  return lastLines(logFile, LOG_LINES).includes(UNREADABLE);
}

/** Removes the network records of a stopped engine, and their unused bridges. Agents get new networks. */
export async function forgetNetworks(dataDir: string): Promise<void> {
  const folders = await engineFolders(dataDir);
  const files = folders.map((folder) => path.join(folder, 'network', 'files', 'local-kv.db'));
  for (const file of files.filter((each) => existsSync(each))) await forgetThoseIn(file);
}

async function forgetThoseIn(file: string): Promise<void> {
  const written = await readFile(file, 'latin1');
  // Docker's file may be damaged, so bridge names are searched as text.
  const names = written.match(/(?<="BridgeName":")(?!docker0")[^"\s/]{1,15}(?=")/g) ?? [];
  for (const bridge of new Set(names)) {
    // The bridge was removed or never created.
    await run('ip', ['link', 'delete', bridge], { timeout: 10_000 }).catch(() => undefined);
  }
  await rm(file);
}
