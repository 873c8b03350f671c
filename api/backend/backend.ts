import { createListener, type Listener } from '../http/listener.js';
import { agentViewEndpoints } from './agent-views.js';
import { agentEndpoints } from './agents.js';
import type { BackendDependencies } from './dependencies.js';
import { deploymentEndpoints } from './deployments.js';
import { healthEndpoints } from './health.js';
import { hostEndpoints } from './hosts.js';
import { heartbeatEndpoints } from './heartbeat.js';
import { BACKEND_LIMITS } from './limits.js';
import { logEndpoints } from './logs.js';
import { operationEndpoints } from './operations.js';
import { releaseEndpoints } from './releases.js';
import { runtimeEndpoints } from './runtime.js';

/** Every endpoint of the backend API. */
export function backendEndpoints(dependencies: BackendDependencies) {
  return [
    ...agentEndpoints(dependencies),
    ...operationEndpoints(dependencies),
    ...releaseEndpoints(dependencies),
    ...agentViewEndpoints(dependencies),
    ...deploymentEndpoints(dependencies),
    ...runtimeEndpoints(dependencies),
    ...logEndpoints(dependencies),
    ...hostEndpoints(dependencies),
    ...heartbeatEndpoints(dependencies),
    ...healthEndpoints(dependencies),
  ];
}

/** The backend API: bearer key. */
export function createBackend(dependencies: BackendDependencies): Listener {
  const { config, database, log } = dependencies;
  return createListener({
    name: 'backend',
    title: 'Agent Platform Service: backend API',
    endpoints: backendEndpoints(dependencies),
    limits: BACKEND_LIMITS,
    authenticate: { internalApiKey: config.internalApiKey },
    database,
    log,
    config,
    publicUrl: config.backendUrl,
    refuseFrom: [config.agentSubnets],
  });
}
