import { area, variable, type SettingsOf } from '../../../platform/environment/area.js';
import { text, url } from '../../../platform/environment/types.js';

export const walletProviderSettings = area('Wallet provider', ({ production }) => ({
  apiUrl: variable(
    'WALLETPROV_API_URL',
    url(...(production ? ['https'] : ['http', 'https'])).optional(),
    'where wallets are made that open by a mailbox: `POST /v2/end-users` below it, in the form of Coinbase CDP',
    { otherwise: 'no wallet provider' },
  ),
  apiKey: variable(
    'WALLETPROV_API_KEY',
    text.optional(),
    'is shown there as bearer; one of the two without the other is told to who asks for a wallet',
    { secret: true, otherwise: 'no wallet provider' },
  ),
  projectId: variable(
    'WALLETPROV_PROJECT_ID',
    text.prefault('default'),
    'what the platform is called there, for people to see',
  ),
}));

export type WalletProviderSettings = SettingsOf<typeof walletProviderSettings>;
