import { area, variable, type SettingsOf } from '../environment/area.js';
import { allowedPlaces } from './allowed-places.js';

export const outboundSettings = area('Addresses that people give', () => ({
  allow: variable(
    'OUTBOUND_ALLOW',
    allowedPlaces.prefault(''),
    'what pages, and all that people and agents name by address, may be fetched from although it is not public: `10.1.0.0/16`, `127.0.0.1:8080`',
  ),
}));

export type OutboundSettings = SettingsOf<typeof outboundSettings>;
