import { area, variable, type SettingsOf } from '../environment/area.js';
import { allowedDestinations } from './allowed-places.js';

export const outboundSettings = area('Addresses that people give', () => ({
  allow: variable(
    'OUTBOUND_ALLOW',
    allowedDestinations.prefault(''),
    'places that are not public, or are addresses of this machine or of a name of the platform, from which pages and other user-provided addresses may be fetched: `10.1.0.0/16`, `127.0.0.1:8080`',
  ),
}));

export type OutboundSettings = SettingsOf<typeof outboundSettings>;
