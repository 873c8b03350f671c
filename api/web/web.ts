import { AgentProxy } from '../agent-proxy/agent-proxy.js';
import { apiKey } from '../auth/api-key.js';
import { payer } from '../auth/payer.js';
import { freshSession } from '../auth/fresh-session.js';
import { session } from '../auth/session.js';
import { createListener, type Listener } from '../http/listener.js';
import { accountEndpoints } from './accounts.js';
import { agentAccessEndpoints } from './agent-access.js';
import { agentInteractionEndpoints } from './agent.js';
import { agentEndpoints } from './agents.js';
import { billingEndpoints } from './billing.js';
import { planEndpoints } from './plans.js';
import { browseEndpoints } from './browse.js';
import { chatEndpoints } from './chat.js';
import { cloneEndpoints } from './clones.js';
import { colonyEndpoints } from './colony.js';
import { costEndpoints } from './cost.js';
import { dataFeedEndpoints } from './datafeeds.js';
import { demoEndpoints } from './demo.js';
import { creditEndpoints } from './credits.js';
import type { WebDependencies } from './dependencies.js';
import { emailWebhookEndpoints } from './email-webhook.js';
import { farcasterEndpoints } from './farcaster.js';
import { fleetEndpoints } from './fleet.js';
import { gatewayEndpoints } from './gateway.js';
import { healthEndpoints } from './health.js';
import { heartbeatEndpoints } from './heartbeat.js';
import { identityEndpoints } from './identities.js';
import { instanceEndpoints } from './instance.js';
import { keyEndpoints } from './keys.js';
import { accountExitEndpoints } from './account-exit.js';
import { linkEndpoints } from './link-identities.js';
import { lifecycleEndpoints } from './lifecycle.js';
import { mailedLinkEndpoints } from './mailed-links.js';
import { memoryEndpoints } from './memory.js';
import { metricEndpoints } from './metrics.js';
import { modelEndpoints } from './models.js';
import { pageEndpoints, WEB_TITLE } from './pages/pages.js';
import { paymentSessionEndpoints } from './payment-sessions.js';
import { profileEndpoints } from './profile.js';
import { providerEndpoints } from './providers.js';
import { channelProvisionEndpoints } from './provision-channels.js';
import { provisionEndpoints } from './provision.js';
import { securityEventEndpoints } from './security-events.js';
import { radioEndpoints } from './radio.js';
import { scheduledTaskEndpoints } from './scheduled-tasks.js';
import { sessionEndpoints } from './sessions.js';
import { swarmEndpoints } from './swarms.js';
import { skillEndpoints } from './skills.js';
import { splitEndpoints } from './splits.js';
import { tokenGatingEndpoints } from './token-gating.js';
import { userWalletEndpoints } from './user-wallets.js';
import { videoEndpoints } from './videos.js';
import { walletEndpoints } from './wallet.js';
import { x402Endpoints } from './x402.js';

export function webEndpoints(dependencies: WebDependencies) {
  return [
    ...accountEndpoints(dependencies),
    ...sessionEndpoints(dependencies),
    ...walletEndpoints(dependencies),
    ...userWalletEndpoints(dependencies),
    ...paymentSessionEndpoints(dependencies),
    ...linkEndpoints(dependencies),
    ...creditEndpoints(dependencies),
    ...emailWebhookEndpoints(dependencies),
    ...tokenGatingEndpoints(dependencies),
    ...securityEventEndpoints(dependencies),
    ...farcasterEndpoints(dependencies),
    ...mailedLinkEndpoints(dependencies),
    ...profileEndpoints(dependencies),
    ...providerEndpoints(dependencies),
    ...identityEndpoints(dependencies),
    ...accountExitEndpoints(dependencies),
    ...keyEndpoints(dependencies),
    ...agentEndpoints(dependencies),
    ...agentAccessEndpoints(dependencies),
    ...lifecycleEndpoints(dependencies),
    ...provisionEndpoints(dependencies),
    ...channelProvisionEndpoints(dependencies),
    ...cloneEndpoints(dependencies),
    ...chatEndpoints(dependencies),
    ...agentInteractionEndpoints(dependencies),
    ...heartbeatEndpoints(dependencies),
    ...demoEndpoints(dependencies),
    ...modelEndpoints(dependencies),
    ...dataFeedEndpoints(dependencies),
    ...instanceEndpoints(dependencies),
    ...costEndpoints(dependencies),
    ...fleetEndpoints(dependencies),
    ...colonyEndpoints(dependencies),
    ...metricEndpoints(dependencies),
    ...billingEndpoints(dependencies),
    ...planEndpoints(dependencies),
    ...healthEndpoints(),
    ...swarmEndpoints(dependencies),
    ...videoEndpoints(dependencies),
    ...splitEndpoints(dependencies),
    ...radioEndpoints(dependencies),
    ...scheduledTaskEndpoints(dependencies),
    ...skillEndpoints(dependencies),
    ...browseEndpoints(dependencies),
    ...memoryEndpoints(dependencies),
    ...gatewayEndpoints(dependencies),
    ...x402Endpoints(dependencies),
    ...pageEndpoints(dependencies),
  ];
}

/** Creates the web API, authenticated by session cookie or API key. */
export function createWeb(dependencies: WebDependencies): Listener {
  const { apiKeys, payingSessions, sessions, sessionUses } = dependencies;
  const { settings, database, log, refusals, secrets } = dependencies;
  const { agentsBySubdomain: agents, gatewayConnections: gateways } = dependencies;
  const { agentsAt } = settings.http;
  return createListener({
    name: 'web',
    title: WEB_TITLE,
    endpoints: webEndpoints(dependencies),
    limits: [],
    authenticate: [
      session.with({
        find: async (token) => {
          const found = await sessions.find(token);
          if (!found) return undefined;
          sessionUses.record({ id: found.id, userId: found.user.id, lastUsed: found.lastSeenAt });
          return { ...found, sessionId: found.id };
        },
        publicUrl: settings.http.webUrl,
      }),
      apiKey.with((shown) => apiKeys.find(shown.apiKey)),
      payer.with((shown) => payingSessions.find(shown)),
      freshSession.with({ maxAgeMs: settings.accounts.stepUpMaxAgeMs }),
    ],
    database,
    refusals,
    secrets,
    log,
    settings: settings.http,
    requests: dependencies.requests,
    refuseFrom: [settings.agents.subnetPool],
    otherNames:
      agentsAt &&
      ((shared) => new AgentProxy({ ...shared, ...agentsAt, agents, gateways, secrets })),
  });
}
