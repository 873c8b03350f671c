/** Longest wait that a header can impose: 10 minutes. */
const MAX_MS = 600_000;

/** Parses `retry-after`, seconds or a date, to ms up to 10 minutes; undefined if invalid. */
export function retryAfterMs(headers: Headers, now: number = Date.now()): number | undefined {
  const value = headers.get('retry-after')?.trim();
  if (value === undefined || value === '') return undefined;
  // The standard has no fractions of a second, but some servers send them.
  const ms = /^\d+(\.\d+)?$/.test(value) ? Number(value) * 1000 : Date.parse(value) - now;
  return Number.isNaN(ms) ? undefined : Math.min(Math.max(Math.ceil(ms), 0), MAX_MS);
}
