import type { Operation } from './document.js';
import type { FuzzRequest } from './requests.js';

/** A response; `text` is undefined if its stream was left unread. */
export interface FuzzAnswer {
  readonly status: number;
  readonly type: string;
  readonly text: string | undefined;
}

/** Signs of leaked internals: stack traces, SQL errors, file paths. */
const INSIDES =
  /node_modules|\bat .*\.(ts|js):\d+|sequelize|ECONNREFUSED|ENOENT|violates|syntax error at|invalid input syntax|\/(?:tmp|home|var|root|usr)\//i;

/** Body of a masked internal error; an outage has its own text. */
const MASKED = '"Internal server error"';

/**
 * Describes the fault of a response; undefined if there is none.
 *
 * @param away statuses of 500 or more that are correct because a dependency is unavailable.
 */
export function faultOf(
  operation: Operation,
  request: FuzzRequest,
  { status, type, text }: FuzzAnswer,
  away: readonly number[],
): string | undefined {
  const isAway = away.includes(status) && !text?.includes(MASKED);
  if (status >= 500 && !isAway) return `${status}: ${text?.slice(0, 300)}`;
  // Node itself refuses a request whose path and headers have more than 16 KiB.
  if (status === 431 && text === '') return undefined;
  const declared = operation.answers.get(status);
  if (declared === undefined) return `undeclared status ${status}: ${text?.slice(0, 300)}`;
  const [mediaType = ''] = type.split(';');
  if (declared.types.length === 0 ? text !== '' : !fits(declared.types, mediaType)) {
    return `undeclared ${mediaType} with ${status}`;
  }
  if (mediaType === 'application/json' && declared.json) {
    const read = declared.json.safeParse(JSON.parse(text ?? ''));
    if (!read.success) return `undeclared body with ${status}: ${read.error.message.slice(0, 300)}`;
  }
  if (status >= 400 && INSIDES.test(text ?? '')) return `leaks internals: ${text}`;
  if (status < 300 && operation.body && !isAccepted(operation, request)) {
    return `${status} for a body that is not declared`;
  }
  return undefined;
}

function fits(declared: readonly string[], type: string): boolean {
  return declared.some((each) => each === '*/*' || each === type);
}

function isAccepted({ body }: Operation, request: FuzzRequest): boolean {
  if (body === undefined) return true;
  if (request.body === undefined || request.body === '') return !body.required;
  // Parsed, because properties with undefined values are not sent.
  return body.accepts.safeParse(JSON.parse(request.body)).success;
}
