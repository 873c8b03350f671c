import type { Requester } from '../../src/platform/audit/requester.js';
import type { CallerOf } from '../auth/authentication.js';
import type { person } from '../auth/person.js';
import type { EndpointRequest } from '../http/endpoint.js';

/** The parts of a user's request that identify the requester. */
export type PersonRequest = Pick<
  EndpointRequest<CallerOf<typeof person>>,
  'caller' | 'idempotencyId' | 'requestId' | 'tenant'
>;

/** Returns the requester of a user's request. */
export const requestedByPerson = ({
  caller,
  idempotencyId,
  requestId,
  tenant,
}: PersonRequest): Requester => ({ actor: caller.user.id, idempotencyId, requestId, tenant });
