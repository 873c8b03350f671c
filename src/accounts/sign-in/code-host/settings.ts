import { address } from '../../../platform/environment/address.js';
import { area, variable, type SettingsOf } from '../../../platform/environment/area.js';
import { text } from '../../../platform/environment/types.js';

export const codeHostSettings = area('Code host', (mode) => ({
  clientId: variable(
    'CODEHOST_CLIENT_ID',
    text.optional(),
    'OAuth client id of the platform at the code host',
    { whenUnset: 'no code host' },
  ),
  clientSecret: variable(
    'CODEHOST_CLIENT_SECRET',
    text.optional(),
    'OAuth client secret of the platform at the code host',
    { secret: true, whenUnset: 'no code host' },
  ),
  url: variable(
    'CODEHOST_URL',
    address(mode, 'http', 'https').prefault('https://github.com'),
    'address of the code host for sign-in',
  ),
  name: variable('CODEHOST_NAME', text.optional(), 'name of the code host on the pages', {
    whenUnset: '`GitHub`, or the host of another address',
  }),
  apiUrl: variable(
    'CODEHOST_API_URL',
    address(mode, 'http', 'https').prefault('https://api.github.com'),
    'address of the API of the code host, which returns the identity of a user',
  ),
}));

export type CodeHostSettings = SettingsOf<typeof codeHostSettings>;
