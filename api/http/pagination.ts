import * as z from 'zod';
import { tryParseJson } from '../../src/lib/json.js';

export const DEFAULT_PAGE = 50;
export const MAX_PAGE = 200;

const MAX_CURSOR_LENGTH = 2_000;

/** Where a page ends, and the next one goes on: of what kind is the list's own affair. */
type Position = readonly string[];

/** A whole number in a query: `usual` where it is left out. */
export function wholeNumber(
  name: string,
  { least = 1, most, usual }: { readonly least?: number; readonly most: number; usual: number },
) {
  return z
    .string()
    .regex(/^\d{1,9}$/, { error: `${name} must be a whole number from ${least} to ${most}` })
    .transform(Number)
    .pipe(z.number().min(least).max(most))
    .default(usual);
}

/** What most lists are ordered by: a time, and of equal ones an id. */
const TIME_AND_ID = z.tuple([z.iso.datetime(), z.string()]);

/**
 * `limit` and `cursor`, to be spread into a list's query schema. A handler gets the cursor as the
 * position that it stands for; any that no page has named is refused.
 */
export function pageQuery<P extends z.ZodType<Position>>(position: P, max = MAX_PAGE, usual = max) {
  return {
    limit: wholeNumber('limit', { most: max, usual }),
    cursor: z
      .string()
      .min(1)
      .max(MAX_CURSOR_LENGTH)
      .transform((cursor, context): z.output<P> => {
        const read = position.safeParse(tryParseJson(Buffer.from(cursor, 'base64url').toString()));
        if (read.success) return read.data;
        context.addIssue({ code: 'custom', message: 'cursor is not valid' });
        return z.NEVER;
      })
      .optional(),
  };
}

/** The same of an ordinary list. */
export const page = pageQuery(TIME_AND_ID, MAX_PAGE, DEFAULT_PAGE);

/**
 * The `Link` header that names the next page, or no header on the last one.
 *
 * @param query of the list, all of which but the cursor is repeated in the link.
 * @param next where this page ends; undefined on the last one.
 */
export function nextPageLink(
  path: string,
  { cursor: _previous, ...query }: Readonly<Record<string, unknown>>,
  next: Position | undefined,
): Record<string, string> {
  if (next === undefined) return {};
  const repeated = Object.entries(query).filter(([, value]) => value !== undefined);
  const search = new URLSearchParams(
    repeated.map(([name, value]): [string, string] => [name, String(value)]),
  );
  search.set('cursor', Buffer.from(JSON.stringify(next)).toString('base64url'));
  return { Link: `<${path}?${search.toString()}>; rel="next"` };
}
