import { isAdminEmail } from '../../src/accounts/accounts/admin.js';
import { isAdminById } from '../../src/accounts/accounts/users.js';
import { admin } from '../auth/admin.js';
import { apiKey } from '../auth/api-key.js';
import { bearerOf, keyMatcher } from '../auth/bearer-token.js';
import { icecastSecret } from '../auth/icecast.js';
import { internalKey } from '../auth/internal-key.js';
import { optionalBearer } from '../auth/optional-bearer.js';
import { createListener, type Listener } from '../http/listener.js';
import { indexEndpoint } from '../http/service-index.js';
import { agentViewEndpoints } from './agent-views.js';
import { agentEndpoints } from './agents.js';
import { aiChatEndpoints } from './ai-chat.js';
import { aiEndpoints } from './ai.js';
import { browseEndpoints } from './browse.js';
import { busEndpoints } from './bus.js';
import { cloneEndpoints } from './clones.js';
import type { BackendDependencies } from './dependencies.js';
import { deploymentEndpoints } from './deployments.js';
import { healthEndpoints } from './health.js';
import { hostMcpEndpoints } from './hostmcp.js';
import { hostEndpoints } from './hosts.js';
import { heartbeatEndpoints } from './heartbeat.js';
import { installationEndpoints } from './installations.js';
import { inviteEndpoints } from './invites.js';
import { keyEndpoints } from './keys.js';
import { AI_LIMIT, GENERAL_LIMIT } from './limits.js';
import { logEndpoints } from './logs.js';
import { memoryEndpoints } from './memory.js';
import { metricEndpoints } from './metrics.js';
import { openAiEndpoints } from './openai.js';
import { operationEndpoints } from './operations.js';
import { paymentEndpoints } from './payments.js';
import { radioEndpoints } from './radio.js';
import { runtimeEndpoints } from './runtime.js';
import { undergroundEventEndpoints } from './underground-events.js';
import { undergroundWalletEndpoints } from './underground-wallets.js';
import { splitEndpoints } from './splits.js';
import { traceEndpoints } from './traces.js';
import { usageEndpoints } from './usage.js';

const TITLE = 'Agent Platform Service: backend API';

export function backendEndpoints(dependencies: BackendDependencies) {
  const endpoints = [
    ...agentEndpoints(dependencies),
    ...operationEndpoints(dependencies),
    ...agentViewEndpoints(dependencies),
    ...deploymentEndpoints(dependencies),
    ...cloneEndpoints(dependencies),
    ...runtimeEndpoints(dependencies),
    ...logEndpoints(dependencies),
    ...hostEndpoints(dependencies),
    ...heartbeatEndpoints(dependencies),
    ...aiEndpoints(dependencies),
    ...aiChatEndpoints(dependencies),
    ...openAiEndpoints(dependencies),
    ...paymentEndpoints(),
    ...usageEndpoints(),
    ...traceEndpoints(dependencies),
    ...metricEndpoints(dependencies),
    ...keyEndpoints(),
    ...installationEndpoints(dependencies),
    ...inviteEndpoints(dependencies),
    ...undergroundWalletEndpoints(dependencies),
    ...undergroundEventEndpoints(dependencies),
    ...splitEndpoints(dependencies),
    ...busEndpoints(dependencies),
    ...radioEndpoints(dependencies),
    ...browseEndpoints(dependencies),
    ...memoryEndpoints(dependencies),
    ...healthEndpoints(dependencies),
  ];
  return [...endpoints, ...hostMcpEndpoints(dependencies, endpoints), indexEndpoint(TITLE)];
}

/** Creates the backend API, for the internal key and, where an endpoint accepts them, users' API keys. */
export function createBackend(dependencies: BackendDependencies): Listener {
  const { apiKeys, isGuarded, settings, database, log, refusals, secrets } = dependencies;
  const isInternal = keyMatcher(settings.http.internalApiKeys);
  return createListener({
    name: 'backend',
    title: TITLE,
    endpoints: backendEndpoints(dependencies),
    limits: [GENERAL_LIMIT, AI_LIMIT],
    authenticate: [
      internalKey.with(settings.http.internalApiKeys),
      icecastSecret.with(settings.radio.icecast?.authSecret),
      apiKey.with((shown) => apiKeys.find(shown.apiKey)),
      admin.with({
        isAdmin: (userId) => isAdminById(database, userId, settings.accounts),
        isAdminEmail: (email) => isAdminEmail(email, settings.accounts),
      }),
      optionalBearer.with({
        // If agents can reach loopback listeners, headers from loopback are not trusted.
        trustsLoopback: async () => settings.ai.trustHeaders === 'loopback' && (await isGuarded()),
      }),
    ],
    trustsForwarded: (request) => isInternal(bearerOf(request) ?? ''),
    database,
    refusals,
    secrets,
    log,
    settings: settings.http,
    requests: dependencies.requests,
    refuseFrom: [settings.agents.subnetPool],
  });
}
