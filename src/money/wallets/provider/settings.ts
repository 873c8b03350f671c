import { address } from '../../../platform/environment/address.js';
import { area, variable, type SettingsOf } from '../../../platform/environment/area.js';
import { text } from '../../../platform/environment/types.js';

export const walletProviderSettings = area('Wallet provider', (mode) => ({
  apiUrl: variable(
    'WALLETPROV_API_URL',
    address(mode, 'http', 'https').optional(),
    'base URL of the wallet provider, which creates wallets for e-mail addresses at `POST /v2/end-users`, in the format of Coinbase CDP',
    { whenUnset: 'no wallet provider' },
  ),
  apiKey: variable(
    'WALLETPROV_API_KEY',
    text.optional(),
    'bearer token for the wallet provider; if only one of the two settings is set, requests for a wallet fail with an error that names the missing setting',
    { secret: true, whenUnset: 'no wallet provider' },
  ),
  projectId: variable(
    'WALLETPROV_PROJECT_ID',
    text.prefault('default'),
    'name of the platform at the wallet provider, as shown to users',
  ),
}));

export type WalletProviderSettings = SettingsOf<typeof walletProviderSettings>;
