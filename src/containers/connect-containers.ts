import { createHash } from 'node:crypto';
import type { Config } from '../config.js';
import { DockerContainers } from './docker-containers.js';

/**
 * The adapter for this installation's Docker daemon. Who holds another encryption key is another
 * installation: several can share a Docker daemon and never touch each other's containers.
 */
export function connectContainers(
  config: Pick<Config, 'dockerHost' | 'encryptionKey'>,
): DockerContainers {
  const installation = installationOf(config.encryptionKey);
  return new DockerContainers({ dockerHost: config.dockerHost, installation });
}

/** The name of the installation that holds this key: it does not tell the key. */
export function installationOf(encryptionKey: Buffer): string {
  return createHash('sha256')
    .update('installation')
    .update(encryptionKey)
    .digest('hex')
    .slice(0, 16);
}
