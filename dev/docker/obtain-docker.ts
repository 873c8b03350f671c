import { describeFailure } from '../failure.js';
import { startDockerDaemon, type DockerDaemon } from './docker-daemon.js';
import { findDocker } from './find-docker.js';

/** The Docker engine to use, or the reason why there is none. */
export type Docker =
  | { readonly host: string; readonly own: DockerDaemon | undefined }
  | { readonly host: undefined; readonly missing: string };

export interface DockerOptions {
  /** Folder in which an engine of our own keeps images, containers and volumes. */
  readonly dataDir: string;
  readonly runDir: string;
  /** True if an engine may be installed and started here. */
  readonly manage: boolean;
}

/**
 * Finds a Docker engine, or starts one where possible and allowed. Never throws: features with containers
 * report that Docker is missing, and the rest of the platform works.
 */
export async function obtainDocker({ dataDir, runDir, manage }: DockerOptions): Promise<Docker> {
  const host = await findDocker();
  if (host !== undefined) return { host, own: undefined };

  const named = process.env.DOCKER_HOST?.trim();
  if (named) {
    return { host: undefined, missing: `No Docker engine answers at DOCKER_HOST=${named}.` };
  }
  const missing = 'No Docker engine answers: start Docker, or set DOCKER_HOST.';
  if (!manage) return { host: undefined, missing };
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return { host: undefined, missing };
  try {
    const own = await startDockerDaemon(dataDir, runDir);
    return { host: own.host, own };
  } catch (error) {
    return { host: undefined, missing: describeFailure(error) };
  }
}
