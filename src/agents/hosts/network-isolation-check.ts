import type { Database } from '../../platform/database/database.js';
import { cachedFor } from '../../lib/cached-for.js';

const FRESH_MS = 5_000;

/**
 * Makes a check, cached for 5 s, that agents cannot reach the host's own addresses. Unknown counts as false,
 * and so does no host.
 */
export function networkIsolationCheck(
  database: Database,
  host: string | undefined,
): () => Promise<boolean> {
  if (host === undefined) return () => Promise.resolve(false);
  return cachedFor(FRESH_MS, async () => {
    const egress = await egressOf(database, host).catch(() => undefined);
    return egress === 'guarded';
  });
}

async function egressOf(database: Database, host: string): Promise<string | undefined> {
  const sql = 'SELECT egress FROM hosts WHERE id = $host';
  const [row] = await database.asPlatform().query<{ egress: string }>(sql, { host });
  return row?.egress;
}
