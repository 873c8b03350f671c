import { createHash } from 'node:crypto';
import type { Config } from '../config.js';
import { DockerContainers } from './docker-containers.js';

/**
 * The adapter for this installation's engine. Who holds another encryption key is another
 * installation: several can share an engine and never touch each other's containers.
 */
export function connectContainers(
  config: Pick<Config, 'dockerHost' | 'encryptionKey'>,
): DockerContainers {
  const installation = createHash('sha256')
    .update('installation')
    .update(config.encryptionKey)
    .digest('hex')
    .slice(0, 16);
  return new DockerContainers({ dockerHost: config.dockerHost, installation });
}
