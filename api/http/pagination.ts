import * as z from 'zod';
import { tryParseJson } from '../../src/lib/json.js';
import { sentAs } from './json-schema.js';

export const DEFAULT_PAGE = 50;
export const MAX_PAGE = 200;

const MAX_CURSOR_LENGTH = 2_000;

/** The position after which the next page starts; its fields depend on the list. */
export type Position = readonly string[];

/** Parses a whole number in a query; defaults to `usual`. */
export function wholeNumber(
  name: string,
  { least = 1, most, usual }: { readonly least?: number; readonly most: number; usual: number },
) {
  return z
    .string()
    .regex(/^\d{1,9}$/, { error: `${name} must be a whole number from ${least} to ${most}` })
    .register(sentAs, { type: 'integer', minimum: least, maximum: most, default: usual })
    .transform(Number)
    .pipe(z.number().min(least).max(most))
    .default(usual);
}

/** The usual sort order of lists: time, then id. */
const TIME_AND_ID = z.tuple([z.iso.datetime(), z.string()]);

/** Returns `limit` and `cursor` for a list's query schema; handlers get a cursor's decoded position. */
export function pageQuery<P extends z.ZodType<Position>>(position: P, max = MAX_PAGE, usual = max) {
  return {
    limit: wholeNumber('limit', { most: max, usual }).describe(
      'Maximum number of items on the page',
    ),
    cursor: z
      .string()
      .min(1)
      .max(MAX_CURSOR_LENGTH)
      .transform((cursor, context): z.output<P> => {
        const read = position.safeParse(tryParseJson(Buffer.from(cursor, 'base64url').toString()));
        if (read.success) return read.data;
        context.addIssue({ code: 'custom', message: 'cursor is invalid' });
        return z.NEVER;
      })
      .describe('Start of the page, from the `Link` header of the page before')
      .optional()
      .register(pageCursors, {}),
  };
}

/** Returns the cursor of the page after a position. */
export const cursorOf = (position: Position): string =>
  Buffer.from(JSON.stringify(position)).toString('base64url');

const pageCursors = z.registry<object>();

/** Reports whether a list with this query has pages, and so a `Link` header. */
export function isPaged(query: z.ZodType | undefined): boolean {
  const cursor: unknown = query instanceof z.ZodObject ? query.shape.cursor : undefined;
  return cursor instanceof z.ZodType && pageCursors.has(cursor);
}

export const page = pageQuery(TIME_AND_ID, MAX_PAGE, DEFAULT_PAGE);

/**
 * Returns the `Link` header for the next page, or no header on the last page.
 * @param query the list's query; the link repeats it with a new cursor.
 * @param next the position at the end of this page; undefined on the last page.
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
  search.set('cursor', cursorOf(next));
  return { Link: `<${path}?${search.toString()}>; rel="next"` };
}
