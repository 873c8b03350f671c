import { ApiKeyUses } from '../../src/accounts/api-key-uses.js';
import { ApiKeyLookup } from '../../src/accounts/api-key-lookup.js';
import { createListener, type Listener } from '../http/listener.js';
import { agentToolEndpoints } from './agent-tools.js';
import { agentViewEndpoints } from './agent-views.js';
import { agentEndpoints } from './agents.js';
import { aiChatEndpoints } from './ai-chat.js';
import { aiEndpoints } from './ai.js';
import type { BackendDependencies } from './dependencies.js';
import { deploymentEndpoints } from './deployments.js';
import { healthEndpoints } from './health.js';
import { hostEndpoints } from './hosts.js';
import { heartbeatEndpoints } from './heartbeat.js';
import { keyEndpoints } from './keys.js';
import { BACKEND_LIMITS } from './limits.js';
import { logEndpoints } from './logs.js';
import { openAiEndpoints } from './openai.js';
import { operationEndpoints } from './operations.js';
import { releaseEndpoints } from './releases.js';
import { runtimeEndpoints } from './runtime.js';
import { usageEndpoints } from './usage.js';

/** Every endpoint of the backend API. */
export function backendEndpoints(dependencies: BackendDependencies) {
  return [
    ...agentEndpoints(dependencies),
    ...operationEndpoints(dependencies),
    ...releaseEndpoints(dependencies),
    ...agentToolEndpoints(dependencies),
    ...agentViewEndpoints(dependencies),
    ...deploymentEndpoints(dependencies),
    ...runtimeEndpoints(dependencies),
    ...logEndpoints(dependencies),
    ...hostEndpoints(dependencies),
    ...heartbeatEndpoints(dependencies),
    ...aiEndpoints(dependencies),
    ...aiChatEndpoints(dependencies),
    ...openAiEndpoints(dependencies),
    ...usageEndpoints(),
    ...keyEndpoints(),
    ...healthEndpoints(dependencies),
  ];
}

/** The backend API: the internal key, or a user's API key where an endpoint takes one. */
export function createBackend(dependencies: BackendDependencies): Listener {
  const { config, database, log, secrets } = dependencies;
  const keys = new ApiKeyLookup(database, config);
  const uses = new ApiKeyUses(database, log);
  return createListener({
    name: 'backend',
    title: 'Agent Platform Service: backend API',
    endpoints: backendEndpoints(dependencies),
    limits: BACKEND_LIMITS,
    authenticate: {
      internalApiKey: config.internalApiKey,
      believesLoopback: config.aiTrustHeaders === 'loopback',
      async apiKey(key) {
        const holder = await keys.find(key);
        if (holder) uses.note(holder);
        return holder;
      },
    },
    database,
    secrets,
    log,
    config,
    publicUrl: config.backendUrl,
    refuseFrom: [config.agentSubnets],
  });
}
