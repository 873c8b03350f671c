import { BROWSE_MS } from '../backend/browse-contract.js';
import { MEMORY } from '../backend/memory-contract.js';
import type { WebDependencies } from './dependencies.js';
import { forwarder } from './forward.js';
import { LIMITS } from './limits.js';

/** Creates `/api/memory` for the owners of agents; the backend decides on access. */
export function memoryEndpoints({ backend }: Pick<WebDependencies, 'backend'>) {
  return MEMORY.map(
    forwarder(backend, {
      keyScope: 'files',
      limit: LIMITS.browse,
      limitOfCaller: LIMITS.memoryOfUser,
      timeoutMs: BROWSE_MS,
    }),
  );
}
