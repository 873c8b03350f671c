import { BadGatewayError } from '../lib/errors.js';
import { boundedRequest, textOf } from '../platform/http/strict-call.js';
import { tryParseJson } from '../lib/json.js';

export interface ServiceCall {
  /** The service's name in error messages. */
  readonly name: string;
  readonly url: string;
  /** The request body, posted as JSON; without a body the call is a GET. */
  readonly body?: object;
  readonly headers?: Readonly<Record<string, string>>;
  /** Most bytes of the answer. */
  readonly maxBytes: number;
  /** The signal that aborts the call. */
  readonly signal: AbortSignal;
}

/**
 * Calls a service once and parses its answer as JSON.
 *
 * @returns the status and the parsed answer; `said` is undefined if the answer is not JSON.
 * @throws BadGatewayError if the service does not answer or its answer is too long.
 */
export async function callService({ name, ...call }: ServiceCall) {
  try {
    const { body, status } = await boundedRequest({ ...call, accept: 'application/json' });
    return { status, said: tryParseJson(body ? await textOf(body) : '') };
  } catch (cause) {
    throw new BadGatewayError(`${name} does not answer: retry later`, { cause });
  }
}
