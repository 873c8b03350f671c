import * as z from 'zod';
import { apiKey } from '../auth/api-key.js';
import { endpoint } from '../http/endpoint.js';
import { reply } from '../http/reply.js';
import { presentValidKey, validKey } from '../views/valid-key.js';

/** Creates `POST /api/validate-key` (spec 4.5), for services that receive an API key. */
export function keyEndpoints() {
  return [
    endpoint({
      method: 'POST',
      path: '/api/validate-key',
      operationId: 'validateApiKey',
      summary: 'Validate an API key',
      tag: 'API keys',
      auth: apiKey,
      keyScope: 'any',
      responses: { 200: z.strictObject(validKey) },
      handler: ({ caller }) => reply(200, presentValidKey(caller)),
    }),
  ];
}
