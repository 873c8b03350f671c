// Run as a program of its own, so that the launcher does not keep the database library in memory.
import { loadSettings } from '../src/settings.js';
import { migrate, MigrationRefusedError } from '../src/database/migrate.js';
import { roleOf } from '../src/database/roles.js';

const settings = loadSettings();
if (settings.database.ownerUrl === undefined) {
  console.log('DATABASE_OWNER_URL is not set: the schema is taken as it is.');
} else {
  try {
    const done = await migrate(settings.database.ownerUrl, roleOf(settings.database.url));
    if (done.length > 0) console.log(`Migrated the database: ${done.join(', ')}`);
  } catch (error) {
    if (!(error instanceof MigrationRefusedError)) throw error;
    console.error(error.message);
    process.exitCode = 1;
  }
}
