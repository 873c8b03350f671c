import { area, variable, type SettingsOf } from '../../../platform/environment/area.js';
import { entriesOf, text, textAs, url } from '../../../platform/environment/types.js';

const names = textAs('ids, separated by commas', (value): readonly string[] | undefined => {
  const entries = entriesOf(value);
  return entries.length > 0 ? entries : undefined;
});

export const identityProviderSettings = area('Identity provider', ({ production }) => {
  // What comes over http may be anybody's.
  const protocols = production ? ['https'] : ['http', 'https'];
  return {
    issuerUrl: variable(
      'IDP_ISSUER_URL',
      url(...protocols).prefault('https://accounts.google.com'),
      'who signs its tokens; all else is discovered from there',
    ),
    clientIds: variable(
      'IDP_CLIENT_ID',
      names.optional(),
      'what the platform is called there. Of several the first one signs in, and all are believed to be meant by security events',
      { otherwise: 'no identity provider' },
    ),
    clientSecret: variable(
      'IDP_CLIENT_SECRET',
      text.optional(),
      'by which the platform shows that it is that client',
      { secret: true, otherwise: 'a client without a secret' },
    ),
    riscConfigurationUrl: variable(
      'IDP_RISC_CONFIGURATION_URL',
      url(...protocols).prefault('https://accounts.google.com/.well-known/risc-configuration'),
      'where it says by which keys its security events are signed',
    ),
  };
});

export type IdentityProviderSettings = SettingsOf<typeof identityProviderSettings>;
