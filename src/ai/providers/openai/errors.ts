import { isObject, type JsonObject } from '../../../lib/json.js';
import { ProviderError, type ProviderFailure } from '../../completion/provider-error.js';
import type { ProviderName } from '../../completion/provider-names.js';
import { failureOfStatus } from '../shared/failure-of-status.js';

/** Refuses a body that reports an error under a 200. @throws ProviderError */
export function refuseError(name: ProviderName, body: unknown): void {
  if (!isObject(body)) return;
  const { base_resp: base } = body;
  const code = isObject(base) ? numberIn(base.status_code) : undefined;
  if (code !== undefined && code !== 0)
    throw new ProviderError(name, BASE_FAILURES[code] ?? 'overloaded');
  const error = errorIn(body);
  if (error) throw failureOfError(name, error);
}

/** Finds the error in a body, in any form of compatible servers; its code and type are in the result. */
export function errorIn(body: unknown): JsonObject | undefined {
  if (!isObject(body)) return undefined;
  const { choices, error, object, type } = body;
  if (isObject(error)) return error;
  if (error || object === 'error' || type === 'error') return body;
  // OpenRouter's form for an answer that the model broke off, and those of other servers.
  for (const choice of Array.isArray(choices) ? (choices as readonly unknown[]) : []) {
    if (!isObject(choice)) continue;
    if (isObject(choice.error)) return choice.error;
    if (choice.error || BROKEN_OFF.has(choice.finish_reason)) return choice;
  }
  return undefined;
}

/** Finish reasons of answers that were broken off. */
const BROKEN_OFF: ReadonlySet<unknown> = new Set([
  'error',
  'abort',
  'network_error',
  'insufficient_system_resource',
]);

/** Classifies an error under a 200. */
export function failureOfError(name: ProviderName, error: JsonObject): ProviderError {
  const status = numberIn(error.code ?? error.status);
  if (status === undefined || status < 400 || status >= 600) {
    return new ProviderError(name, failureOf(name, 500, error));
  }
  const failure = failureOf(name, status, error);
  // The provider accepted the request, but a server behind it did not: another provider can answer.
  return new ProviderError(name, failure === 'bad_request' ? 'overloaded' : failure, status);
}

function numberIn(value: unknown): number | undefined {
  const number = typeof value === 'string' || typeof value === 'number' ? Number(value) : NaN;
  return Number.isNaN(number) ? undefined : number;
}

/** MiniMax's own error codes, as far as they distinguish failures. */
const BASE_FAILURES: Readonly<Record<number, ProviderFailure>> = {
  1001: 'overloaded',
  1002: 'rate_limited',
  1004: 'bad_key',
  1008: 'bad_key',
  1026: 'refused',
  1027: 'refused',
  1039: 'rate_limited', // tokens per minute
  2013: 'bad_request',
  2049: 'bad_key',
};

/** Failures for the error codes and types of the OpenAI format, regardless of the status. */
const NAMED_FAILURES = new Map<string, ProviderFailure>(
  Object.entries({
    context_length_exceeded: 'too_long',
    request_too_large: 'too_long',
    model_not_found: 'unknown_model',
    model_not_supported: 'unknown_model',
    content_filter: 'refused',
    content_policy_violation: 'refused',
    insufficient_quota: 'bad_key',
    billing_not_active: 'bad_key',
    invalid_api_key: 'bad_key',
    rate_limit_exceeded: 'rate_limited',
    // Groq's words for what its model made, not for the request.
    tool_use_failed: 'garbage',
    json_validate_failed: 'garbage',
    output_parse_failed: 'garbage',
  } as const),
);

/** Returns the failure for a status, unless the error's own fields are more specific. */
export function failureOf(
  name: ProviderName,
  status: number,
  { code, metadata, type }: JsonObject,
): ProviderFailure {
  for (const word of [code, type]) {
    const known = typeof word === 'string' ? NAMED_FAILURES.get(word) : undefined;
    if (known) return known;
  }
  // At OpenRouter a 403 is a moderation refusal.
  if (status === 403 && name === 'openrouter') return 'refused';
  const failure = failureOfStatus(status);
  // OpenRouter accepted the request; the error names the server behind it that refused.
  const isOfAnother = isObject(metadata) && typeof metadata.provider_name === 'string';
  return failure === 'bad_request' && isOfAnother ? 'overloaded' : failure;
}
