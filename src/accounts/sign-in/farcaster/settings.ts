import { address } from '../../../platform/environment/address.js';
import { area, variable } from '../../../platform/environment/area.js';
import { text } from '../../../platform/environment/types.js';

export const farcasterSettings = area('Farcaster', (mode) => ({
  authUrl: variable(
    'FARCASTER_AUTH_URL',
    address(mode, 'http', 'https').prefault('https://auth.farcaster.xyz'),
    'address of the Quick Auth server whose tokens prove a Farcaster account',
  ),
  domain: variable(
    'FARCASTER_DOMAIN',
    text.optional(),
    'required audience of the tokens of Quick Auth',
    { whenUnset: 'the host of `WEB_URL`' },
  ),
}));
