import { isLoopback } from '../environment/loopback.js';

/** Reports whether traffic to PostgreSQL leaves this machine without TLS and without `sslmode=disable`. */
export function isSilentlyPlain(address: string): boolean {
  const { host, searchParams: query } = new URL(address);
  const mode = query.get('sslmode') ?? (query.get('ssl') === 'true' ? 'verify-full' : 'prefer');
  return (mode === 'prefer' || mode === 'allow') && !isLoopback(query.get('host') ?? host);
}
