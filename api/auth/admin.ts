import { ForbiddenError } from '../../src/lib/errors.js';
import type { ApiKeyCaller } from './api-key.js';
import { configurableAuthentication } from './authentication.js';
import { bearerOf } from './bearer-token.js';
import { bearer } from './bearer.js';
import type { InternalCaller } from './internal-key.js';

/** Lookups that decide who is an administrator. */
export interface Admins {
  /** Reports whether the account belongs to an administrator. */
  readonly isAdmin: (userId: string) => Promise<boolean>;
  /** Reports whether the address, vouched for by a trusted caller, belongs to an administrator. */
  readonly isAdminEmail: (email: string) => boolean;
}

/**
 * Administrator (spec 5.5): an admin's API key, or the internal key. The internal key alone means the
 * operator; with a user id, that account decides; with only an address, ADMIN_EMAILS decides.
 */
export const admin = configurableAuthentication<Admins, InternalCaller | ApiKeyCaller>({
  name: 'admin',
  schemes: bearer.schemes,
  errors: [401, 403],
  prepare(admins, configs) {
    const byBearer = bearer.prepare(configs);
    const isAdmin = (caller: InternalCaller | ApiKeyCaller) => {
      if (caller.kind === 'api-key') return caller.isAdmin;
      if (caller.user) return admins.isAdmin(caller.user.id);
      return caller.email === undefined || admins.isAdminEmail(caller.email);
    };
    return async (presented) => {
      if (bearerOf(presented.request) === undefined) return undefined;
      const found = await byBearer(presented);
      if (found && (await isAdmin(found.caller))) return found;
      throw new ForbiddenError('Administrator access required', 'ADMIN_REQUIRED');
    };
  },
});
