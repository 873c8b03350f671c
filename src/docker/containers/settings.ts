import { area, variable, type SettingsOf } from '../../platform/environment/area.js';
import { size, text, url } from '../../platform/environment/types.js';

export const containerSettings = area('Docker', () => ({
  dockerHost: variable(
    'DOCKER_HOST',
    url('unix', 'tcp', 'http', 'https', 'npipe').optional(),
    'where Docker answers',
    { otherwise: "Docker's usual socket" },
  ),
  runtime: variable(
    'AGENT_CONTAINER_RUNTIME',
    text.optional(),
    "what runs agents' containers: `runsc` (gVisor) or `kata`, say, when Docker has it",
    { otherwise: "Docker's default" },
  ),
  diskFloor: variable(
    'AGENT_HOST_DISK_FLOOR',
    size.prefault('5g'),
    "what stays free of the Docker host's disk: below it, no new agents and no copies",
  ),
  volumeLimit: variable(
    'AGENT_DISK_LIMIT',
    size.prefault('20g'),
    "most that an agent's memory may take of the disk: told at 80 %, stopped at 100 %",
  ),
}));

export type ContainerSettings = SettingsOf<typeof containerSettings>;
