import { createHash } from 'node:crypto';
import type { Settings } from '../settings.js';
import { DockerContainers } from './docker-containers.js';

/**
 * The adapter for this installation's Docker daemon. Who holds another encryption key is another
 * installation: several can share a Docker daemon and never touch each other's containers.
 */
export function connectContainers(
  settings: Pick<Settings, 'containers' | 'secrets'>,
): DockerContainers {
  const installation = installationOf(settings.secrets.encryptionKey);
  return new DockerContainers({ dockerHost: settings.containers.dockerHost, installation });
}

/** The name of the installation that holds this key: it does not tell the key. */
export function installationOf(encryptionKey: Buffer): string {
  return createHash('sha256')
    .update('installation')
    .update(encryptionKey)
    .digest('hex')
    .slice(0, 16);
}
