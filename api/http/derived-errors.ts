import type { Endpoint } from './endpoint.js';

/** The error statuses of an endpoint: those it lists and those that follow from its declaration. */
export function errorStatuses(endpoint: Endpoint, limited: boolean): Set<number> {
  const { auth, method } = endpoint;
  const statuses = new Set([...(endpoint.errors ?? []), 500]);
  const add = (condition: unknown, ...added: number[]) => {
    if (condition) for (const status of added) statuses.add(status);
  };
  const changes = method !== 'GET';

  add(endpoint.params ?? endpoint.query ?? endpoint.headers, 400);
  add(changes, 413);
  add(endpoint.body, 400, 415);
  add(true, ...auth.errors);
  add(changes, ...(auth.errorsOfChanges ?? []));
  add(limited, 429);
  add(endpoint.idempotent, 400, 409, 422);
  return statuses;
}
