import { randomUUID } from 'node:crypto';

/** Returns the caller's request id if it is safe in logs and headers, else a new one. */
export function readRequestId(header: string | string[] | undefined): string {
  if (typeof header === 'string' && /^[\w.:-]{1,128}$/.test(header)) return header;
  return randomUUID();
}
