import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';

/** Creates a folder for all state of one benchmark, which is removed at its end. */
export async function makeFolder(atEnd: (cleanup: () => Promise<void>) => void): Promise<string> {
  const folder = await mkdtemp(path.join(tmpdir(), 'aps-bench-'));
  await chmod(folder, 0o711); // root's PostgreSQL runs as another user, which must traverse the folder
  atEnd(() => rm(folder, { recursive: true, force: true, maxRetries: 3 }));
  return folder;
}
