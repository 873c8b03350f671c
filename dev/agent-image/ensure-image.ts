// A separate program, so that memory used to build the image does not stay with the launcher.
import { agentSettings } from '../../src/agents/lifecycle/settings.js';
import { ImageUnavailableError } from '../../src/docker/containers/container-errors.js';
import { runtimeImages } from '../../src/docker/containers/image-name.js';
import { connectDocker } from '../../src/docker/containers/docker-client.js';
import { containerSettings } from '../../src/docker/containers/settings.js';
import { readAreas } from '../../src/platform/environment/read.js';
import { processSettings } from '../../src/platform/process/settings.js';
import { ensureAgentImage } from './build-openclaw.js';
import { DiskFailure } from '../failure.js';

const {
  agents,
  containers,
  process: { cacheDir },
} = readAreas(
  { agents: agentSettings, containers: containerSettings, process: processSettings },
  process.env,
);
const report = (message: object) => process.send?.(message);
try {
  const docker = connectDocker(containers.dockerHost);
  const log = (line: string) => report({ line });
  const { runtimeVersion: version } = agents;
  const { usual: official } = runtimeImages(agents);
  report({ image: await ensureAgentImage({ docker, version, official, cacheDir, log }) });
} catch (error) {
  if (error instanceof DiskFailure) report({ failure: error.message });
  else if (error instanceof ImageUnavailableError) report({ problem: error.message });
  else throw error;
}
process.disconnect();
