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
    'issuer of the tokens of the identity provider; its other addresses are discovered from there',
  ),
  name: variable('IDP_NAME', text.optional(), 'name of the identity provider on the pages', {
    whenUnset: '`Google`, or the host of another issuer',
  }),
  clientIds: variable(
    'IDP_CLIENT_ID',
    names.optional(),
    'client ids of the platform at the identity provider. The first one is used for sign-in; security events may be addressed to any of them',
    { whenUnset: 'no identity provider' },
  ),
  clientSecret: variable(
    'IDP_CLIENT_SECRET',
    text.optional(),
    'client secret of the platform at the identity provider',
    { secret: true, whenUnset: 'a client without a secret' },
  ),
  riscConfigurationUrl: variable(
    'IDP_RISC_CONFIGURATION_URL',
    address(mode, 'http', 'https').prefault(
      'https://accounts.google.com/.well-known/risc-configuration',
    ),
    'address of the security event configuration of the identity provider, which names its signing keys',
  ),
}));

export type IdentityProviderSettings = SettingsOf<typeof identityProviderSettings>;
