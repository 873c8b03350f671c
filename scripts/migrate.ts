// Run as a program of its own, so that the launcher does not keep the database library in memory.
import { loadConfig } from '../src/config.js';
import { migrate, MigrationRefusedError } from '../src/database/migrate.js';
import { roleOf } from '../src/database/roles.js';

const config = loadConfig();
if (config.databaseOwnerUrl === undefined) {
  console.log('DATABASE_OWNER_URL is not set: the schema is taken as it is.');
} else {
  try {
    const done = await migrate(config.databaseOwnerUrl, roleOf(config.databaseUrl));
    if (done.length > 0) console.log(`Migrated the database: ${done.join(', ')}`);
  } catch (error) {
    if (!(error instanceof MigrationRefusedError)) throw error;
    console.error(error.message);
    process.exitCode = 1;
  }
}
