import path from 'node:path';
import { buffer } from 'node:stream/consumers';
import { pack } from 'tar-stream';
import { AGENT_UID } from './container-profile.js';

/**
 * A tar archive of files for the state volume, readable by the runtime's user alone.
 *
 * @throws RangeError for a path that leads out of the volume.
 */
export async function stateArchive(files: Readonly<Record<string, string>>): Promise<Buffer> {
  const archive = pack();
  const owner = { uid: AGENT_UID, gid: AGENT_UID };
  for (const directory of parentDirectories(Object.keys(files))) {
    archive.entry({ name: `${directory}/`, type: 'directory', mode: 0o700, ...owner });
  }
  for (const [name, content] of Object.entries(files)) {
    archive.entry({ name, mode: 0o600, mtime: new Date(), ...owner }, content);
  }
  archive.finalize();
  return buffer(archive);
}

/** Every folder on the way, parents first: one that Docker had to make would be root's. */
function parentDirectories(names: readonly string[]): string[] {
  const directories = new Set<string>();
  for (const name of names) {
    if (
      path.posix.isAbsolute(name) ||
      path.posix.normalize(name) !== name ||
      name.startsWith('..')
    ) {
      throw new RangeError(`${name} is not a path inside the state volume`);
    }
    for (
      let parent = path.posix.dirname(name);
      parent !== '.';
      parent = path.posix.dirname(parent)
    ) {
      directories.add(parent);
    }
  }
  return [...directories].sort();
}
