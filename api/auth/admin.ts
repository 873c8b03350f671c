import { ForbiddenError } from '../../src/lib/errors.js';
import type { ApiKeyCaller } from './api-key.js';
import { authentication, configurableAuthentication } from './authentication.js';
import { bearerOf, keyMatcher } from './bearer-token.js';
import { bearer } from './bearer.js';
import { internalKey, type InternalCaller } from './internal-key.js';

/** Lookups that decide who is an administrator. */
export interface Admins {
  readonly isAdmin: (userId: string) => Promise<boolean>;
  /** Reports whether the address, vouched for by a trusted caller, belongs to an administrator. */
  readonly isAdminEmail: (email: string) => boolean;
}

/** An admin's API key, or the internal key: with a user id its account decides, with an email ADMIN_EMAILS. */
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
      throw adminRequired('Administrator access required');
    };
  },
});

/** The internal key without a user; `x-user-email`, if given, must be in ADMIN_EMAILS (spec 5.5). */
export const operator = authentication<InternalCaller>({
  name: 'operator',
  schemes: internalKey.schemes,
  errors: [400, 401, 403],
  prepare(configs) {
    const { isAdminEmail } = configs.of(admin);
    const keys = configs.of(internalKey);
    const isInternal = keyMatcher(keys);
    const byKey = internalKey.prepare(configs);
    return async (presented) => {
      const key = bearerOf(presented.request);
      if (keys.length > 0 && key !== undefined && !isInternal(key)) {
        throw adminRequired('Only available to the operator: use the internal key');
      }
      const found = await byKey(presented);
      const { email, user } = found?.caller ?? {};
      if (user) throw adminRequired('Only available to the operator: leave out x-user-id');
      if (email !== undefined && !isAdminEmail(email)) {
        throw adminRequired('Only available to administrators: x-user-email names none');
      }
      return found;
    };
  },
});

const adminRequired = (message: string) => new ForbiddenError(message, 'ADMIN_REQUIRED');
