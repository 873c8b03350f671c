/** Nobody's word keeps us away for longer: 10 minutes. */
const MAX_MS = 600_000;

/**
 * What an answer's `retry-after` header asks us to wait: a number of seconds or an HTTP date.
 *
 * @returns milliseconds, between 0 and 10 minutes; undefined without a header that can be read.
 */
export function retryAfterMs(headers: Headers, now: number = Date.now()): number | undefined {
  const value = headers.get('retry-after')?.trim();
  if (value === undefined || value === '') return undefined;
  // A fraction of a second is not in the standard, but some send it.
  const ms = /^\d+(\.\d+)?$/.test(value) ? Number(value) * 1000 : Date.parse(value) - now;
  return Number.isNaN(ms) ? undefined : Math.min(Math.max(Math.ceil(ms), 0), MAX_MS);
}
