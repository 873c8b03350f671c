import { area, variable, type SettingsOf } from '../environment/area.js';
import { url } from '../environment/types.js';

export const containerSettings = area('Docker', () => ({
  dockerHost: variable(
    'DOCKER_HOST',
    url('unix', 'tcp', 'http', 'https', 'npipe').optional(),
    'where Docker answers',
    { otherwise: "Docker's usual socket" },
  ),
}));

export type ContainerSettings = SettingsOf<typeof containerSettings>;
