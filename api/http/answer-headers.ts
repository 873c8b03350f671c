import type * as z from 'zod';
import type { Json } from './json-schema.js';
import { isPaged } from './pagination.js';

const text = (description: string): Json => ({ description, schema: { type: 'string' } });
const number = (description: string): Json => ({ description, schema: { type: 'integer' } });

/** The headers of answers that clients read, as the OpenAPI documents have them. */
export const ANSWER_HEADERS = {
  'Content-Location': text('URL of the page after all redirects'),
  'Icecast-Auth-User': text('`1`, only on an admission'),
  'Idempotent-Replayed': text(
    '`true` if the answer repeats that of an earlier request with the same key',
  ),
  Link: text('`<…>; rel="next"`: address of the next page; missing on the last page'),
  Location: text('URL to go to'),
  'RateLimit-Limit': number('Amount that the limit allows, such as requests per window'),
  'RateLimit-Remaining': number('Remaining amount of the limit'),
  'RateLimit-Reset': number('Seconds until the limit allows more'),
  'Retry-After': number('Seconds to wait before a retry'),
  'X-Request-Id': text("The request's id in the platform's logs"),
  'X-Session-Remaining': text('Amount left of the payment session'),
  'X-Stream-Id': text('The id by which the stream can be stopped'),
  'X-Temporal-Run': text('URL or id of the workflow run, for operators'),
} as const;

export type AnswerHeader = keyof typeof ANSWER_HEADERS;

export const RATE_LIMIT_HEADERS = [
  'RateLimit-Limit',
  'RateLimit-Remaining',
  'RateLimit-Reset',
] as const satisfies readonly AnswerHeader[];

export const isAnswerHeader = (name: string): name is AnswerHeader =>
  Object.hasOwn(ANSWER_HEADERS, name);

/** Returns the headers of an endpoint's own answers: declared ones, and those implied by the declaration. */
export function ownHeadersOf({
  answerHeaders = [],
  idempotent,
  query,
}: {
  readonly answerHeaders?: readonly AnswerHeader[] | undefined;
  readonly idempotent?: unknown;
  readonly query?: z.ZodType | undefined;
}): AnswerHeader[] {
  return [
    ...answerHeaders,
    ...(isPaged(query) ? (['Link'] as const) : []),
    ...(idempotent ? (['Idempotent-Replayed'] as const) : []),
  ];
}
