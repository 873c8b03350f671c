import type { TenantDatabase } from '../database/database.js';

export interface Requester {
  readonly tenant: TenantDatabase;
  /** A user's id, or the operator's for a requester without a user. */
  readonly actor: string;
  readonly requestId: string;
  /** An id that stays the same when the request is repeated. */
  readonly idempotencyId: string;
}
