import { isLoopback } from '../environment/loopback.js';

/**
 * Whether what is said to this address of PostgreSQL could be read on its way without anybody having
 * said that it may: it leaves this machine, and neither demands TLS nor says `sslmode=disable`.
 */
export function isSilentlyPlain(address: string): boolean {
  const { host, searchParams: query } = new URL(address);
  const mode = query.get('sslmode') ?? (query.get('ssl') === 'true' ? 'verify-full' : 'prefer');
  return (mode === 'prefer' || mode === 'allow') && !isLoopback(query.get('host') ?? host);
}
