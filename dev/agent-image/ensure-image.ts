// Run as a program of its own, so that what builds the image does not stay in the launcher's memory.
import { loadConfig } from '../../src/config.js';
import { ImageUnavailableError } from '../../src/containers/container-errors.js';
import { connectDocker } from '../../src/containers/docker-client.js';
import { ensureAgentImage } from './build-openclaw.js';
import { DiskFailure } from '../failure.js';

const { dockerHost, agentRuntimeVersion: version, cacheDir } = loadConfig();
const tell = (message: object) => process.send?.(message);
try {
  const docker = connectDocker(dockerHost);
  const log = (line: string) => tell({ line });
  tell({ image: await ensureAgentImage({ docker, version, cacheDir, log }) });
} catch (error) {
  if (error instanceof DiskFailure) tell({ failure: error.message });
  else if (error instanceof ImageUnavailableError) tell({ problem: error.message });
  else throw error;
}
process.disconnect();
