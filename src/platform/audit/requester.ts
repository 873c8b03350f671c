import type { TenantDatabase } from '../database/database.js';

/** The origin of a request, as recorded in the audit log. */
export interface Requester {
  /** The database within the requester's permissions. */
  readonly tenant: TenantDatabase;
  /** A user's id, or the operator's for a requester without a user. */
  readonly actor: string;
  readonly requestId: string;
  /** An id that stays the same when the request is repeated. */
  readonly idempotencyId: string;
}
