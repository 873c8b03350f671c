import { readFile } from 'node:fs/promises';
import { runToEnd } from '../processes/run.js';

/** Unmounts mounts that a killed engine left in a folder; they would keep it from being removed. */
export async function unmountWithin(folder: string): Promise<void> {
  const mounts = await readFile('/proc/self/mounts', 'utf8');
  for (const line of mounts.split('\n').reverse()) {
    const [, at = ''] = line.split(' ');
    if (`${at}/`.startsWith(`${folder}/`))
      await runToEnd('umount', ['--lazy', at], { timeout: 10_000 });
  }
}
