import { address } from '../../platform/environment/address.js';
import { area, variable, type SettingsOf } from '../../platform/environment/area.js';
import { size, text } from '../../platform/environment/types.js';

export const containerSettings = area('Docker', (mode) => ({
  dockerHost: variable(
    'DOCKER_HOST',
    address(mode, 'unix', 'tcp', 'http', 'https', 'npipe').optional(),
    'address of Docker',
    { whenUnset: "Docker's usual socket" },
  ),
  runtime: variable(
    'AGENT_CONTAINER_RUNTIME',
    text.optional(),
    'container runtime of agents, such as `runsc` (gVisor) or `kata`; must be installed in Docker',
    { whenUnset: "Docker's default" },
  ),
  diskFloor: variable(
    'AGENT_HOST_DISK_FLOOR',
    size.prefault('5g'),
    'minimum free space on the disk of the Docker host: below it, no agent is created and no memory is copied',
  ),
  volumeLimit: variable(
    'AGENT_DISK_LIMIT',
    size.prefault('20g'),
    'maximum disk space of the memory of an agent: at 80 % its owner is notified, at 100 % the agent is stopped',
  ),
}));

export type ContainerSettings = SettingsOf<typeof containerSettings>;
