import { randomUUID } from 'node:crypto';

/** Takes over a caller's request id when it is safe to repeat in logs and headers. */
export function readRequestId(header: string | string[] | undefined): string {
  if (typeof header === 'string' && /^[\w.:-]{1,128}$/.test(header)) return header;
  return randomUUID();
}
