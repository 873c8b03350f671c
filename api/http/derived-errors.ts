import type { Declaration } from './endpoint.js';

/**
 * The error statuses of one that asks others for its answer: theirs, and that they cannot be reached.
 * That they refuse our own key is no fault of the caller's.
 */
export function errorsOf(...asked: readonly Declaration[]): readonly number[] {
  const theirs = asked.flatMap((declared) => [...errorStatuses(declared)]);
  return [...theirs.filter((status) => status !== 401 && status !== 403), 502];
}

/** The error statuses of an endpoint: those it lists and those that follow from its declaration. */
export function errorStatuses(endpoint: Declaration): Set<number> {
  const { auth, method } = endpoint;
  const statuses = new Set([...(endpoint.errors ?? []), 421, 429, 500]);
  const add = (condition: unknown, ...added: number[]) => {
    if (condition) for (const status of added) statuses.add(status);
  };
  const changes = method !== 'GET';

  add(endpoint.params ?? endpoint.query ?? endpoint.headers, 400);
  add(changes, 413);
  add(endpoint.body, 400, 415);
  add(true, ...auth.errors);
  add(changes, ...(auth.errorsOfChanges ?? []));
  add(endpoint.idempotent, 400, 409, 422);
  return statuses;
}
