/** Longest wait that a header can impose: 10 minutes. */
const MAX_MS = 600_000;

/**
 * Parses the `retry-after` header of an answer: a number of seconds or an HTTP date.
 *
 * @returns milliseconds, between 0 and 10 minutes; undefined without a valid header.
 */
export function retryAfterMs(headers: Headers, now: number = Date.now()): number | undefined {
  const value = headers.get('retry-after')?.trim();
  if (value === undefined || value === '') return undefined;
  // The standard has no fractions of a second, but some servers send them.
  const ms = /^\d+(\.\d+)?$/.test(value) ? Number(value) * 1000 : Date.parse(value) - now;
  return Number.isNaN(ms) ? undefined : Math.min(Math.max(Math.ceil(ms), 0), MAX_MS);
}
