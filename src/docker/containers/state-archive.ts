import path from 'node:path';
import { buffer } from 'node:stream/consumers';
import { pack } from 'tar-stream';
import { AGENT_UID } from './container-profile.js';
import type { AgentContainerSpec } from './container-spec.js';
import { environmentFile } from './environment-file.js';
import { SECRETS_FILE } from './openclaw-config.js';

/**
 * Builds a tar archive of the files for the state volume, readable only by the runtime's user.
 * @throws RangeError for a path that leads out of the volume.
 */
export async function stateArchive({
  files,
  secrets,
}: Pick<AgentContainerSpec, 'files' | 'secrets'>): Promise<Buffer> {
  const contents = Object.entries(files).map(([name, content]) => ({ name, content, mode: 0o600 }));
  if (Object.keys(secrets).length > 0) {
    contents.push({ name: SECRETS_FILE, content: environmentFile(secrets), mode: 0o400 });
  }
  const archive = pack();
  const owner = { uid: AGENT_UID, gid: AGENT_UID };
  for (const directory of parentDirectories(contents.map(({ name }) => name))) {
    archive.entry({ name: `${directory}/`, type: 'directory', mode: 0o700, ...owner });
  }
  for (const { name, content, mode } of contents) {
    archive.entry({ name, mode, mtime: new Date(), ...owner }, content);
  }
  archive.finalize();
  return buffer(archive);
}

/** Returns all parent folders, outermost first; a folder created by Docker would belong to root. */
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
