import * as z from 'zod';
import { BadRequestError } from '../../src/lib/errors.js';
import { person } from '../auth/person.js';
import { BROWSE, BROWSE_MS } from '../backend/browse-contract.js';
import { errorsOf } from '../http/derived-errors.js';
import { endpoint, type Declaration } from '../http/endpoint.js';
import { reply } from '../http/reply.js';
import { successOf } from './backend-client.js';
import type { WebDependencies } from './dependencies.js';
import { LIMITS } from './limits.js';

const withAgent = z.object({ agentId: z.string() });

/**
 * Creates the backend's `/api/browse/*` endpoints (spec 4.14) for signed-in users; the backend decides on
 * access.
 */
export function browseEndpoints({ backend }: WebDependencies) {
  return BROWSE.map((declared: Declaration) => {
    const { atOnce, body, idempotent, method, path, query, responses, summary, tag } = declared;
    return endpoint({
      ...{ method, path, summary, tag, idempotent, atOnce, query, body, responses },
      auth: person,
      limit: LIMITS.agents,
      errors: errorsOf(declared),
      async handler(request) {
        // The backend only sees the person, so this is checked here: an API key never opens the
        // operators' folder, not even an administrator's key.
        const asked = withAgent.safeParse(method === 'GET' ? request.query : request.body);
        if (request.caller.kind === 'api-key' && !asked.success) {
          throw new BadRequestError('agentId required');
        }
        const sent = { query: request.query, body: request.body };
        const waits = { takesMs: BROWSE_MS, signal: request.signal };
        const answer = await backend.forward(request, declared, { ...sent, ...waits });
        return reply(successOf(declared).status, answer);
      },
    });
  });
}
