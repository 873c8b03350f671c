// Run as a program of its own, so that the build does not stay in the launcher's memory.
import { connectDocker } from '../../src/docker/containers/docker-client.js';
import { EgressImageError, ensureEgressImage } from './ensure-egress-image.js';

const [name = ''] = process.argv.slice(2);
const report = (message: object) => process.send?.(message);
try {
  report({ image: await ensureEgressImage(connectDocker(process.env.DOCKER_HOST), name) });
} catch (error) {
  if (!(error instanceof EgressImageError)) throw error;
  report({ problem: error.message });
}
process.disconnect();
