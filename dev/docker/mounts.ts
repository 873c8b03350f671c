import { readFile } from 'node:fs/promises';
import { runToEnd } from '../processes/run.js';

/** Unmounts what an engine that was killed has left mounted in a folder; else the folder stays. */
export async function unmountWithin(folder: string): Promise<void> {
  const mounts = await readFile('/proc/self/mounts', 'utf8');
  for (const line of mounts.split('\n').reverse()) {
    const [, at = ''] = line.split(' ');
    if (`${at}/`.startsWith(`${folder}/`))
      await runToEnd('umount', ['--lazy', at], { timeout: 10_000 });
  }
}
