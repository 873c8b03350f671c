import path from 'node:path';
import { startPostgres } from '../../dev/postgres/postgres.js';
import { freePort } from '../../dev/ports.js';
import { migrate } from '../../src/platform/database/migrate.js';
import { ensureRolesAndDatabase } from '../../src/platform/database/roles.js';

const SERVING_ROLE = 'agent_platform_api';
const PASSWORD = 'of-a-benchmark';

/** Starts a migrated database on a server of its own, configured as by `npm start`: its commits are durable. */
export async function startOwnPostgres(
  folder: string,
  atEnd: (cleanup: () => Promise<void>) => void,
): Promise<{ ownerUrl: string; servingUrl: string }> {
  const postgres = await startPostgres({
    dataDir: path.join(folder, 'postgres'),
    runDir: path.join(folder, 'run'),
    port: await freePort(),
    password: PASSWORD,
  });
  atEnd(() => postgres.stop());
  const urls = await ensureRolesAndDatabase(postgres.superuserUrl, {
    database: 'agent_platform',
    ownerRole: 'agent_platform_owner',
    ownerPassword: PASSWORD,
    servingRole: SERVING_ROLE,
    servingPassword: PASSWORD,
  });
  await migrate(urls.ownerUrl, SERVING_ROLE);
  return urls;
}
