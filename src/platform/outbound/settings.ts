import { area, variable, type SettingsOf } from '../environment/area.js';
import { allowedDestinations } from './allowed-places.js';

export const outboundSettings = area('Addresses supplied by users', () => ({
  allow: variable(
    'OUTBOUND_ALLOW',
    allowedDestinations.prefault(''),
    'addresses from which pages and other user-provided URLs may be fetched although they are not public, or belong to this machine or to a host name of the platform: `10.1.0.0/16`, `127.0.0.1:8080`',
  ),
}));

export type OutboundSettings = SettingsOf<typeof outboundSettings>;
