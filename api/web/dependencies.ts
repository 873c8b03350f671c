import type { Logger } from 'pino';
import type { Database } from '../../src/platform/database/database.js';
import type { ApiServices } from '../../src/services.js';
import type { RequestSeconds } from '../../src/platform/http/request-seconds.js';
import type { Settings } from '../../src/settings.js';
import type { BackendClient } from './backend-client.js';

/** Services that the web API's endpoints use. Containers and workflows are only reached through the backend. */
export interface WebDependencies extends Pick<
  ApiServices,
  | 'agentsBySubdomain'
  | 'ai'
  | 'apiKeys'
  | 'apiKeyValidator'
  | 'chain'
  | 'channelStates'
  | 'chats'
  | 'checkouts'
  | 'clones'
  | 'dataFeeds'
  | 'demoBudget'
  | 'emailEvents'
  | 'farcaster'
  | 'payingSessions'
  | 'paymentSessions'
  | 'gateway'
  | 'gatewayConnections'
  | 'planCheckouts'
  | 'processorEvents'
  | 'providers'
  | 'radioStreams'
  | 'refusals'
  | 'secrets'
  | 'scheduledTasks'
  | 'securityEvents'
  | 'sessionDebits'
  | 'sessions'
  | 'sessionUses'
  | 'splits'
  | 'swarms'
  | 'tokenGate'
  | 'usdc'
  | 'userWallets'
  | 'videoEvents'
  | 'videos'
  | 'walletProvider'
  | 'wallets'
  | 'x402'
  | 'x402Payments'
> {
  readonly settings: Settings;
  readonly database: Database;
  readonly backend: BackendClient;
  readonly log: Logger;
  /** Metrics of requests. */
  readonly requests?: RequestSeconds | undefined;
}
