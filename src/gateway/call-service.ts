import { BadGatewayError } from '../lib/errors.js';
import { boundedRequest, textOf } from '../platform/http/strict-call.js';
import { tryParseJson } from '../lib/json.js';

export interface ServiceCall {
  readonly name: string;
  readonly url: string;
  readonly body?: object;
  readonly headers?: Readonly<Record<string, string>>;
  readonly maxBytes: number;
  readonly signal: AbortSignal;
}

/**
 * Calls a service once, with a body by POST; `said`, the parsed answer, is undefined if the answer is not JSON.
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
