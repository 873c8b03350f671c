import { NotFoundError } from '../../../src/lib/errors.js';
import { isObject } from '../../../src/lib/json.js';
import type { AdmittedState, Middleware } from './context.js';

/** Refuses the path of another user than the one that the caller speaks for, exactly like an unknown one. */
export function requireOwnUser(): Middleware<AdmittedState> {
  return ({ state: { identity, request } }, next) => {
    const { tenant } = identity;
    const named = isObject(request.params) ? request.params.userId : undefined;
    const isOperator = tenant === 'platform';
    const isOwn = typeof tenant === 'object' && tenant.userId === named;
    if (!isOperator && !isOwn) throw new NotFoundError();
    return next();
  };
}
