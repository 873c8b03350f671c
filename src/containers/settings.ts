import { area, variable } from '../environment/area.js';
import { url } from '../environment/types.js';

export const containerSettings = area('Docker', () => ({
  dockerHost: variable(
    'DOCKER_HOST',
    url('unix', 'tcp', 'http', 'https', 'npipe').optional(),
    'where Docker answers',
    { otherwise: "Docker's usual socket" },
  ),
}));
