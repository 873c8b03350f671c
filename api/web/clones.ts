import * as z from 'zod';
import { person } from '../auth/person.js';
import { cloneTermsEndpoint } from '../backend/clones.js';
import { cloneAgent } from '../backend/contract.js';
import { errorsOf } from '../http/derived-errors.js';
import { endpoint } from '../http/endpoint.js';
import { reply } from '../http/reply.js';
import { cloneBody, presentWebClone, webCloneAnswer } from '../views/clones.js';
import type { WebDependencies } from './dependencies.js';
import { LIMITS } from './limits.js';

/** Returns `GET|POST /api/agents/clone` (spec 4.7); the backend checks the parent's owner. */
export function cloneEndpoints(dependencies: WebDependencies) {
  const { backend } = dependencies;
  const { idempotent, method, operationId, path, summary, tag } = cloneAgent;
  const limit = LIMITS.agents;
  return [
    { ...cloneTermsEndpoint(dependencies), limit },
    endpoint({
      ...{ method, path, operationId, summary, tag, idempotent, limit },
      auth: person,
      keyScope: cloneAgent.keyScope,
      body: cloneBody,
      responses: { 202: webCloneAnswer },
      errors: errorsOf(cloneAgent),
      async handler(request) {
        // The handler's amounts become JSON again.
        const sent = { body: z.encode(cloneBody, request.body), storesResponse: true };
        return reply(202, presentWebClone(await backend.call(request, cloneAgent, sent)));
      },
    }),
  ];
}
