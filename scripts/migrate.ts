// Run as a program of its own, so that the launcher does not keep the database library in memory.
import { loadConfig } from '../src/config.js';
import { migrate } from '../src/database/migrate.js';
import { say } from './report.js';

const config = loadConfig();
if (config.databaseOwnerUrl === undefined) {
  say('DATABASE_OWNER_URL is not set: the schema is taken as it is.');
} else {
  const servingRole = decodeURIComponent(new URL(config.databaseUrl).username);
  const done = await migrate(config.databaseOwnerUrl, servingRole);
  if (done.length > 0) say(`Migrated the database: ${done.join(', ')}`);
}
