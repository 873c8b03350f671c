import { address } from '../../../platform/environment/address.js';
import { area, variable, type SettingsOf } from '../../../platform/environment/area.js';
import { entriesOf, text, textAs } from '../../../platform/environment/types.js';

const names = textAs('ids, separated by commas', (value): readonly string[] | undefined => {
  const entries = entriesOf(value);
  return entries.length > 0 ? entries : undefined;
});

export const identityProviderSettings = area('Identity provider', (mode) => ({
  issuerUrl: variable(
    'IDP_ISSUER_URL',
    address(mode, 'http', 'https').prefault('https://accounts.google.com'),
    'issuer of its tokens; all else is discovered from there',
  ),
  name: variable('IDP_NAME', text.optional(), 'its name on the pages', {
    whenUnset: '`Google`, or the host of another issuer',
  }),
  clientIds: variable(
    'IDP_CLIENT_ID',
    names.optional(),
    'client ids of the platform there. The first one signs users in; security events may name any of them',
    { whenUnset: 'no identity provider' },
  ),
  clientSecret: variable(
    'IDP_CLIENT_SECRET',
    text.optional(),
    'by which the platform shows that it is that client',
    { secret: true, whenUnset: 'a client without a secret' },
  ),
  riscConfigurationUrl: variable(
    'IDP_RISC_CONFIGURATION_URL',
    address(mode, 'http', 'https').prefault(
      'https://accounts.google.com/.well-known/risc-configuration',
    ),
    'address of its configuration, which names the keys that sign its security events',
  ),
}));

export type IdentityProviderSettings = SettingsOf<typeof identityProviderSettings>;
