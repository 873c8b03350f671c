import { ForbiddenError } from '../../src/lib/errors.js';
import type { ApiKeyCaller } from './api-key.js';
import { configurableAuthentication } from './authentication.js';
import { bearerOf } from './bearer-token.js';
import { bearer } from './bearer.js';
import type { InternalCaller } from './internal-key.js';

/** How it is known who is an admin. */
export interface Admins {
  /** Whether this is an admin's account. */
  readonly isAdmin: (userId: string) => Promise<boolean>;
  /** Whether the address is an admin's, of whom a trusted caller says that it is theirs. */
  readonly isAdminEmail: (email: string) => boolean;
}

/**
 * An administrator (spec 5.5): an admin's API key, or the internal key. The latter alone is the operator;
 * where it speaks for an account that one decides, and where it names an address alone, ADMIN_EMAILS.
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
      throw new ForbiddenError('Administrators alone may do this', 'ADMIN_REQUIRED');
    };
  },
});
