import type { z } from 'zod';
import { BadGatewayError, ServiceError } from '../../src/errors.js';
import { isObject, tryParseJson } from '../../src/json.js';
import type { SessionCaller } from '../auth/session.js';

/** Spec 8: the bound of a call for a deployment, and so of every other. */
const CALL_TIMEOUT_MS = 15_000;

/** Where in the backend an agent is. */
export const agentPath = (id: string): string => `/api/agents/${encodeURIComponent(id)}`;

/** On whose behalf, and from where, the backend is called. */
export interface OnBehalfOf {
  readonly caller: SessionCaller;
  readonly clientAddress: string;
  readonly requestId: string;
  readonly idempotencyId: string;
}

/** The web API's way to the backend: HTTP, with the internal key and the identity headers. */
export class BackendClient {
  constructor(
    private readonly url: string,
    private readonly internalApiKey: string | undefined,
  ) {}

  /**
   * Calls the backend for a signed-in user.
   *
   * @param waitMs how much longer than usual the answer may take, because it was asked to wait.
   * @throws ServiceError with the backend's own status, text and facts where it refuses,
   *   BadGatewayError when it cannot be reached or answers what it should not.
   */
  async call<T>(
    on: OnBehalfOf,
    method: 'GET' | 'POST' | 'PUT' | 'DELETE',
    path: string,
    answer: z.ZodType<T>,
    body?: unknown,
    waitMs = 0,
  ): Promise<T> {
    const { user } = on.caller;
    let response: Response;
    let text: string;
    try {
      response = await fetch(`${this.url}${path}`, {
        method,
        headers: {
          authorization: `Bearer ${this.internalApiKey ?? ''}`,
          'x-user-id': user.id,
          'x-user-email': user.email,
          'x-user-role': user.isAdmin ? 'admin' : 'user',
          'x-forwarded-for': on.clientAddress,
          'x-request-id': on.requestId,
          // A call that is repeated because its answer was not heard happens once.
          ...(method !== 'GET' && { 'idempotency-key': on.idempotencyId }),
          ...(body !== undefined && { 'content-type': 'application/json' }),
        },
        ...(body !== undefined && { body: JSON.stringify(body) }),
        signal: AbortSignal.timeout(CALL_TIMEOUT_MS + waitMs),
      });
      text = await response.text();
    } catch (error) {
      throw new BadGatewayError('The backend is unavailable', { cause: error });
    }
    const parsed = tryParseJson(text);
    if (response.ok) {
      const read = answer.safeParse(parsed);
      if (read.success) return read.data;
      throw new BadGatewayError('The backend gave an unexpected answer', { cause: read.error });
    }
    throw refusal(response.status, parsed);
  }
}

/** The backend's refusal, as our own answer. That our key is refused is no fault of the caller. */
function refusal(status: number, body: unknown): ServiceError {
  if (status === 401 || status === 403 || !isErrorBody(body)) {
    return new BadGatewayError(`The backend answered with ${status}`);
  }
  const { error, code, requestId: _requestId, ...facts } = body;
  return new ServiceError(status, error, typeof code === 'string' ? code : undefined, facts);
}

function isErrorBody(body: unknown): body is { error: string } & Record<string, unknown> {
  return isObject(body) && typeof body.error === 'string';
}
