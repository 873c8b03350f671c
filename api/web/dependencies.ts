import type { Logger } from 'pino';
import type { Database } from '../../src/database/database.js';
import type { ApiServices } from '../../src/services.js';
import type { Settings } from '../../src/settings.js';
import type { BackendClient } from './backend-client.js';

/** What the web API's endpoints work with. It reaches containers and workflows by the backend only. */
export interface WebDependencies extends Pick<
  ApiServices,
  | 'ai'
  | 'apiKeys'
  | 'apiKeyValidator'
  | 'chain'
  | 'chats'
  | 'clones'
  | 'demoShares'
  | 'farcaster'
  | 'payingSessions'
  | 'paymentSessions'
  | 'gateway'
  | 'providers'
  | 'refusals'
  | 'secrets'
  | 'securityEvents'
  | 'sessionDebits'
  | 'sessionUses'
  | 'splits'
  | 'tokenGate'
  | 'usdc'
  | 'userWallets'
  | 'walletProvider'
  | 'wallets'
> {
  readonly settings: Settings;
  readonly database: Database;
  readonly backend: BackendClient;
  readonly log: Logger;
}
