import { cloneTermsEndpoint } from '../backend/clones.js';
import { cloneAgent } from '../backend/contract.js';
import type { WebDependencies } from './dependencies.js';
import { forwarder } from './forward.js';
import { LIMITS } from './limits.js';

/** Returns `GET|POST /api/agents/clone` (spec 4.7); the backend checks the parent's owner. */
export function cloneEndpoints(dependencies: WebDependencies) {
  const limit = LIMITS.agents;
  const forward = forwarder(dependencies.backend, { limit, storesResponse: true });
  return [{ ...cloneTermsEndpoint(dependencies), limit }, forward(cloneAgent)];
}
