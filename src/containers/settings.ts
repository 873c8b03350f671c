import { area, variable } from '../environment/area.js';
import { size, url } from '../environment/types.js';

export const containerSettings = area('Docker', () => ({
  dockerHost: variable(
    'DOCKER_HOST',
    url('unix', 'tcp', 'http', 'https', 'npipe').optional(),
    'where Docker answers',
    { otherwise: "Docker's usual socket" },
  ),
  diskFloor: variable(
    'AGENT_HOST_DISK_FLOOR',
    size.prefault('5g'),
    "what stays free of the Docker host's disk: below it, no new agents and no copies",
  ),
  volumeLimit: variable(
    'AGENT_DISK_LIMIT',
    size.prefault('20g'),
    "most of an agent's memory that is copied by `update` and `restore`",
  ),
}));
