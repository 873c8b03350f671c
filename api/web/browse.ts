import * as z from 'zod';
import { BadRequestError } from '../../src/lib/errors.js';
import { BROWSE, BROWSE_MS } from '../backend/browse-contract.js';
import type { WebDependencies } from './dependencies.js';
import { forwarder } from './forward.js';
import { LIMITS } from './limits.js';

const withAgent = z.object({ agentId: z.string() });

/** Creates the backend's `/api/browse/*` endpoints (spec 4.14) for sessions; the backend decides on access. */
export function browseEndpoints({ backend }: WebDependencies) {
  return BROWSE.map(
    forwarder(backend, {
      keyScope: 'files',
      limit: LIMITS.browse,
      timeoutMs: BROWSE_MS,
      check({ body, caller, query }) {
        // The backend receives the person and not the key, so an operator's key is refused here.
        if (caller.kind === 'api-key' && !withAgent.safeParse(query ?? body).success) {
          throw new BadRequestError('agentId required');
        }
      },
    }),
  );
}
