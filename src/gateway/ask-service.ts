import { BadGatewayError } from '../lib/errors.js';
import { strictCall, textOf } from '../platform/http/strict-call.js';
import { tryParseJson } from '../lib/json.js';

export interface ServiceCall {
  /** Of who is asked, where a failure is told. */
  readonly name: string;
  readonly url: string;
  /** Posted as JSON; without it the call is a GET. */
  readonly body?: object;
  readonly headers?: Readonly<Record<string, string>>;
  /** Most bytes of an answer. */
  readonly maxBytes: number;
  /** Ends the call. */
  readonly signal: AbortSignal;
}

/**
 * Asks a service, once, for JSON.
 *
 * @returns undefined as `said` where the answer is none.
 * @throws BadGatewayError when it does not answer, or says more than it may.
 */
export async function askService({ name, ...call }: ServiceCall) {
  try {
    const { body, status } = await strictCall({ ...call, accept: 'application/json' });
    return { status, said: tryParseJson(body ? await textOf(body) : '') };
  } catch (cause) {
    throw new BadGatewayError(`${name} does not answer`, { cause });
  }
}
