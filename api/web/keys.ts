import * as z from 'zod';
import {
  createApiKey,
  deleteApiKey,
  getApiKey,
  listApiKeys,
  MAX_API_KEY_NAME,
  type ApiKey,
} from '../../src/accounts/accounts/api-keys.js';
import { KEY_SCOPES } from '../../src/types/key-scopes.js';
import { UnauthorizedError } from '../../src/lib/errors.js';
import { networksOf } from '../../src/platform/http/client-networks.js';
import { visibleName } from '../../src/lib/visible-name.js';
import { requireFresh } from '../auth/fresh-session.js';
import { session } from '../auth/session.js';
import { area } from '../http/area.js';
import { reply } from '../http/reply.js';
import { presentValidKey, validKey } from '../views/valid-key.js';
import type { WebDependencies } from './dependencies.js';
import { LIMITS } from './limits.js';

const PATH = '/api/keys';

const keys = area({ tag: 'API keys', auth: session });
const ofKey = area({
  tag: 'API keys',
  auth: session,
  params: z.object({ id: z.string().max(64).describe('The API key, by its id') }),
  errors: [404],
});

const scope = z.enum(KEY_SCOPES);

const keyItem = z
  .strictObject({
    id: z.string(),
    name: z.string(),
    keyPreview: z.string(),
    scopes: z.array(scope),
    suspended: z
      .literal(true)
      .optional()
      .describe(
        'True if the key was created through a hijacked identity: the key is refused until the identity is enabled again',
      ),
    createdAt: z.iso.datetime(),
    lastUsed: z.iso.datetime().nullable().describe('Accurate to the minute; null if never used'),
  })
  .meta({ id: 'ApiKey' });

function presentKey({ id, name, keyPreview, scopes, createdAt, lastUsed, suspendedAt }: ApiKey) {
  return {
    id,
    name,
    keyPreview,
    scopes,
    ...(suspendedAt !== null && { suspended: true as const }),
    createdAt: createdAt.toISOString(),
    lastUsed: lastUsed?.toISOString() ?? null,
  };
}

/** Creates the `/api/keys` endpoints (spec 4.5) for the API keys of the caller's programs. */
export function keyEndpoints({ apiKeyValidator, database, refusals, settings }: WebDependencies) {
  return [
    keys({
      method: 'POST',
      path: `${PATH}/validate`,
      operationId: 'validateApiKey',
      summary: 'Validate an API key',
      limitOfRefusals: LIMITS.refusedKeys,
      body: z.object({ apiKey: z.string({ error: 'apiKey required' }) }),
      responses: {
        200: z.strictObject({
          ...validKey,
          email: z.string(),
          subscriptionStatus: z.enum(['active', 'ended', 'none']),
        }),
      },
      async handler({ body, clientAddress: address }) {
        const holder = await apiKeyValidator.find(body.apiKey, networksOf(address).site);
        if (!holder) {
          refusals.note({ action: 'key.refused', subject: 'web', address });
          throw new UnauthorizedError('Invalid API key');
        }
        const { email, subscription: subscriptionStatus } = holder;
        return reply(200, { ...presentValidKey(holder), email, subscriptionStatus });
      },
    }),
    keys({
      method: 'GET',
      path: PATH,
      operationId: 'listApiKeys',
      summary: 'List your API keys, oldest first',
      responses: { 200: z.strictObject({ keys: z.array(keyItem) }) },
      async handler({ caller, tenant }) {
        const found = await listApiKeys(tenant, caller.user.id);
        return reply(200, { keys: found.map(presentKey) });
      },
    }),
    keys({
      method: 'POST',
      path: PATH,
      operationId: 'createApiKey',
      summary: 'Create an API key; only this answer shows it',
      idempotent: true,
      body: z.object({
        name: visibleName(MAX_API_KEY_NAME),
        scopes: z
          .array(scope)
          .min(1)
          .max(KEY_SCOPES.length)
          .optional()
          .describe('All but `money` by default; `money` requires a recent sign-in'),
      }),
      limit: LIMITS.newKeys,
      limitOfCaller: LIMITS.newKeysOfUser,
      responses: {
        201: z.strictObject({
          id: z.string(),
          name: z.string(),
          key: z.string().describe('Value for `Authorization: Bearer`'),
          scopes: z.array(scope),
          createdAt: z.iso.datetime(),
        }),
      },
      errors: [409],
      async handler({ body, caller, clientAddress, requestId }) {
        if (body.scopes?.includes('money')) {
          requireFresh(caller, { maxAgeMs: settings.accounts.stepUpMaxAgeMs });
        }
        const owner = { userId: caller.user.id, requestId };
        const { site } = networksOf(clientAddress);
        const requested = { ...body, site, sessionId: caller.sessionId };
        const { createdAt, ...made } = await createApiKey(database, owner, requested);
        return reply(201, { ...made, createdAt: createdAt.toISOString() });
      },
    }),
    ofKey({
      method: 'GET',
      path: `${PATH}/:id`,
      operationId: 'getApiKey',
      summary: 'Get one of your API keys',
      responses: { 200: keyItem },
      async handler({ params, tenant }) {
        return reply(200, presentKey(await getApiKey(tenant, params.id)));
      },
    }),
    ofKey({
      method: 'DELETE',
      path: `${PATH}/:id`,
      operationId: 'deleteApiKey',
      summary: 'Delete an API key; it is rejected from then on',
      responses: { 200: z.strictObject({ success: z.literal(true) }) },
      async handler({ caller, params, requestId, tenant }) {
        await deleteApiKey(tenant, { userId: caller.user.id, requestId }, params.id);
        return reply(200, { success: true });
      },
    }),
  ];
}
