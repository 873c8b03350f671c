import { z } from 'zod';
import { BadRequestError } from '../../src/errors.js';
import { tryParseJson } from '../../src/json.js';

export const DEFAULT_PAGE = 50;
export const MAX_PAGE = 200;

const digits = /^\d{1,9}$/;

/** `limit` and `cursor`, to be spread into a list's query schema. */
export const pageQuery = {
  limit: z
    .string()
    .regex(digits, { error: `limit must be a whole number from 1 to ${MAX_PAGE}` })
    .transform(Number)
    .pipe(z.number().min(1).max(MAX_PAGE))
    .default(DEFAULT_PAGE),
  cursor: z.string().min(1).max(512).optional(),
};

/** The place after which a page begins, as text that clients hand back unread. */
export function encodeCursor(position: readonly string[]): string {
  return Buffer.from(JSON.stringify(position)).toString('base64url');
}

const positionSchema = z.array(z.string());

/**
 * @param length how many parts the list's position has.
 * @throws BadRequestError for anything that encodeCursor did not make.
 */
export function decodeCursor(cursor: string, length: number): string[] {
  const position = positionSchema.safeParse(
    tryParseJson(Buffer.from(cursor, 'base64url').toString()),
  );
  if (position.success && position.data.length === length) return position.data;
  throw new BadRequestError('cursor is not valid');
}

/**
 * The `Link` header that names the next page, or no header on the last one.
 *
 * @param query the other parameters of the list, repeated in the link.
 */
export function nextPageLink(
  path: string,
  query: Readonly<Record<string, string | number | undefined>>,
  nextCursor: string | undefined,
): Record<string, string> {
  if (nextCursor === undefined) return {};
  const next = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined) next.set(name, String(value));
  }
  next.set('cursor', nextCursor);
  return { Link: `<${path}?${next.toString()}>; rel="next"` };
}
