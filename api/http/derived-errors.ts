import { acceptsApiKeys } from '../auth/key-scope.js';
import type { Declaration } from './endpoint.js';
import { namesUser } from './names-user.js';

/** Returns the errors of an endpoint that calls others: theirs, except for rejections of our key, and 502. */
export function errorsOf(...declarations: readonly Declaration[]): readonly number[] {
  const theirs = declarations.flatMap((declared) => [...errorStatuses(declared)]);
  return [...theirs.filter((status) => status !== 401 && status !== 403), 502];
}

/** Returns the error statuses of an endpoint: the listed ones and those implied by its declaration. */
export function errorStatuses(endpoint: Declaration): Set<number> {
  const { auth, keyScope, method } = endpoint;
  const statuses = new Set([...(endpoint.errors ?? []), 421, 429, 500, 503]);
  const add = (condition: unknown, ...added: number[]) => {
    if (condition) for (const status of added) statuses.add(status);
  };
  const changes = method !== 'GET';

  add(endpoint.params ?? endpoint.query ?? endpoint.headers, 400);
  add(changes, 413);
  add(endpoint.body, 400, 415);
  add(namesUser(endpoint.path), 404);
  add(true, ...auth.errors);
  add(changes, ...(auth.errorsOfChanges ?? []));
  add(keyScope !== undefined && keyScope !== 'any' && acceptsApiKeys(auth), 403);
  add(endpoint.idempotent, 400, 409, 422);
  return statuses;
}
