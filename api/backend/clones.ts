import type { ApiServices } from '../../src/services.js';
import type { Settings } from '../../src/settings.js';
import { anonymous } from '../auth/anonymous.js';
import { endpoint } from '../http/endpoint.js';
import { reply } from '../http/reply.js';
import { cloneTerms, presentClone, presentTerms } from '../views/clones.js';
import { cloneAgent } from './contract.js';
import { requestedBy } from './requested-by.js';

interface CloneDependencies extends Pick<ApiServices, 'clones'> {
  readonly settings: Pick<Settings, 'chain'>;
}

/** `GET /api/agents/clone` of both listeners. */
export const cloneTermsEndpoint = ({ clones, settings }: CloneDependencies) =>
  endpoint({
    method: 'GET',
    path: '/api/agents/clone',
    operationId: 'getCloneTerms',
    summary: 'Get the price of a clone, and whether clones can be paid for now',
    tag: 'Clones',
    auth: anonymous,
    responses: { 200: cloneTerms },
    handler: async () => reply(200, await presentTerms(clones, settings.chain)),
  });

/** Creates the backend's `GET|POST /api/agents/clone` (spec 4.7). */
export function cloneEndpoints(dependencies: CloneDependencies) {
  return [
    cloneTermsEndpoint(dependencies),
    cloneAgent.handledBy(async (request) => {
      const clone = await dependencies.clones.request(requestedBy(request), request.body);
      return reply(202, presentClone(clone));
    }),
  ];
}
