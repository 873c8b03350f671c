import { readFile, rm } from 'node:fs/promises';
import path from 'node:path';
import { run } from '../processes/run.js';
import { lastLines } from '../processes/process.js';

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
  const file = path.join(dataDir, 'network', 'files', 'local-kv.db');
  const ids = (await readFile(file, 'latin1')).match(/(?<=\/network\/)[0-9a-f]{64}/g) ?? [];
  for (const id of new Set(ids)) {
    const bridge = ['link', 'delete', `br-${id.slice(0, 12)}`];
    await run('ip', bridge, { timeout: 10_000 }).catch(() => undefined); // gone, or never made
  }
  await rm(file);
}
