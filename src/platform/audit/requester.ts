import type { TenantDatabase } from '../database/database.js';

/** Who asks for something to be done, as the audit log tells it. */
export interface Requester {
  /** The database as they may see it. */
  readonly tenant: TenantDatabase;
  /** A user's id, the operator's for whoever speaks for nobody. */
  readonly actor: string;
  readonly requestId: string;
  /** The same when the request comes again. */
  readonly idempotencyId: string;
}
