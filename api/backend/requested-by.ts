import { OPERATOR_USER_ID } from '../../src/types/operator-user.js';
import type { Requester } from '../../src/platform/audit/requester.js';
import type { ApiKeyCaller } from '../auth/api-key.js';
import { userIdOf } from '../auth/bearer.js';
import type { InternalCaller } from '../auth/internal-key.js';

/** Returns the requester: the API key's user, the user that the caller speaks for, or the operator. */
export function requestedBy({
  caller,
  tenant,
  requestId,
  idempotencyId,
}: Omit<Requester, 'actor'> & { readonly caller: InternalCaller | ApiKeyCaller }): Requester {
  return { actor: userIdOf(caller) ?? OPERATOR_USER_ID, tenant, requestId, idempotencyId };
}
