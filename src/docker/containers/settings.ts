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
    'the container runtime of agents, such as `runsc` (gVisor) or `kata`, if Docker has it',
    { whenUnset: "Docker's default" },
  ),
  diskFloor: variable(
    'AGENT_HOST_DISK_FLOOR',
    size.prefault('5g'),
    "free space to keep on the Docker host's disk: below it, no new agents and no copies",
  ),
  volumeLimit: variable(
    'AGENT_DISK_LIMIT',
    size.prefault('20g'),
    "most disk space of an agent's memory: a warning at 80 %, a stop at 100 %",
  ),
}));

export type ContainerSettings = SettingsOf<typeof containerSettings>;
