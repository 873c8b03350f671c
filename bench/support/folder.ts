import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';

/** A folder for all state of one benchmark; gone at its end. */
export async function makeFolder(atEnd: (cleanup: () => Promise<void>) => void): Promise<string> {
  const folder = await mkdtemp(path.join(tmpdir(), 'aps-bench-'));
  await chmod(folder, 0o711); // root's PostgreSQL runs as another user, who must pass
  atEnd(() => rm(folder, { recursive: true, force: true, maxRetries: 3 }));
  return folder;
}
