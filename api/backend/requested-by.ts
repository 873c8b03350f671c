import { OPERATOR_USER_ID } from '../../src/accounts/new-account.js';
import type { Requester } from '../../src/audit/requester.js';
import type { InternalCaller } from '../auth/internal-key.js';

/** Who asks: the user that the caller speaks for, or the operator. */
export function requestedBy({
  caller,
  tenant,
  requestId,
  idempotencyId,
}: Omit<Requester, 'actor'> & { readonly caller: InternalCaller }): Requester {
  return { actor: caller.user?.id ?? OPERATOR_USER_ID, tenant, requestId, idempotencyId };
}
