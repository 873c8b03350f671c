import * as z from 'zod';
import {
  listIdentities,
  revokeRefreshToken,
  unlinkIdentity,
  type ListedIdentity,
} from '../../src/accounts/accounts/identities.js';
import { shownAddress } from '../../src/money/chain/address.js';
import { IDENTITY_KINDS } from '../../src/types/sign-in-methods.js';
import { freshSession } from '../auth/fresh-session.js';
import { session } from '../auth/session.js';
import { area } from '../http/area.js';
import { reply } from '../http/reply.js';
import type { WebDependencies } from './dependencies.js';

const PATH = '/api/settings/identities';

const identities = area({ tag: 'Accounts', auth: session });

export const identityItem = z
  .strictObject({
    id: z.string(),
    kind: z.enum(IDENTITY_KINDS),
    label: z.string(),
    createdAt: z.iso.datetime(),
    lastUsedAt: z.iso.datetime().nullable(),
  })
  .meta({ id: 'Identity' });

export function identityEndpoints({ database, log, providers, secrets }: WebDependencies) {
  return [
    identities({
      method: 'GET',
      path: PATH,
      operationId: 'listIdentities',
      summary: 'List your linked identities, oldest first',
      responses: { 200: z.strictObject({ identities: z.array(identityItem) }) },
      async handler({ caller, tenant }) {
        const found = await listIdentities(tenant, caller.user.id);
        return reply(200, { identities: found.map(presentIdentity) });
      },
    }),
    identities({
      method: 'DELETE',
      path: `${PATH}/:id`,
      operationId: 'unlinkIdentity',
      summary:
        'Unlink an identity, except the last way to sign in; ends all other sessions that were opened by its kind',
      auth: freshSession,
      params: z.object({ id: z.string().max(64).describe('The identity') }),
      responses: { 200: z.strictObject({ success: z.literal(true) }) },
      errors: [404, 409],
      async handler({ caller, origin, params }) {
        const by = { userId: caller.user.id, sessionId: caller.sessionId };
        const unlinked = await unlinkIdentity(database, by, params.id, origin);
        // If revoking fails, the token stays valid at the provider, but our copy is deleted.
        await revokeRefreshToken(secrets, providers.google, unlinked).catch((error: unknown) =>
          log.warn({ err: error, identityId: unlinked.id }, 'refresh token revocation failed'),
        );
        return reply(200, { success: true });
      },
    }),
  ];
}

export function presentIdentity({ createdAt, id, kind, label, lastUsedAt }: ListedIdentity) {
  return {
    id,
    kind,
    label: kind === 'wallet' ? shownAddress(label) : label,
    createdAt: createdAt.toISOString(),
    lastUsedAt: lastUsedAt?.toISOString() ?? null,
  };
}
