import { existsSync } from 'node:fs';
import { readFile, rm } from 'node:fs/promises';
import path from 'node:path';
import { run } from '../processes/run.js';
import { lastLines } from '../processes/process.js';
import { engineFolders } from './user-namespaces.js';

const LOG_LINES = 200;

/** Where dockerd 20.10 ends for good when it was killed while it took a network away. */
const UNREADABLE = 'libnetwork.(*controller).reservePools';

/** Whether the engine could not start because of the networks that it has written down. */
export function cannotReadNetworks(logFile: string): boolean {
  return lastLines(logFile, LOG_LINES).includes(UNREADABLE);
}

/**
 * Takes away what an engine that does not run has written down of its networks, and their bridges,
 * which would lead nowhere. Agents get their networks anew.
 */
export async function forgetNetworks(dataDir: string): Promise<void> {
  const folders = await engineFolders(dataDir);
  const files = folders.map((folder) => path.join(folder, 'network', 'files', 'local-kv.db'));
  for (const file of files.filter((each) => existsSync(each))) await forgetThoseIn(file);
}

async function forgetThoseIn(file: string): Promise<void> {
  const written = await readFile(file, 'latin1');
  // What Docker wrote in between may be damaged: names are taken wherever they stand.
  const names = written.match(/(?<="BridgeName":")(?!docker0")[^"\s/]{1,15}(?=")/g) ?? [];
  for (const bridge of new Set(names)) {
    // Gone, or never made.
    await run('ip', ['link', 'delete', bridge], { timeout: 10_000 }).catch(() => undefined);
  }
  await rm(file);
}
