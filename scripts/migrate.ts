// A separate program, so that no serving process has the database owner's URL in its memory.
import { Database } from '../src/platform/database/database.js';
import { migrate, MigrationRefusedError } from '../src/platform/database/migrate.js';
import { roleOf } from '../src/platform/database/roles.js';
import { databaseSettings, migrationSettings } from '../src/platform/database/settings.js';
import { checkSchema, UnfitDatabaseError } from '../src/platform/database/start-check.js';
import { readAreas } from '../src/platform/environment/read.js';
import { processSettings } from '../src/platform/process/settings.js';
import { runScript } from '../src/run-script.js';

await runScript(main, MigrationRefusedError, UnfitDatabaseError);

async function main(): Promise<void> {
  const areas = {
    database: databaseSettings,
    migrations: migrationSettings,
    process: processSettings,
  };
  const { database, migrations, process: mode } = readAreas(areas, process.env);
  if (migrations.ownerUrl === undefined) {
    console.log('DATABASE_OWNER_URL is not set: the schema stays unchanged.');
    if (mode.production) await requireSchema(database.url);
    return;
  }
  const done = await migrate(migrations.ownerUrl, roleOf(database.url));
  if (done.length > 0) console.log(`Migrated the database: ${done.join(', ')}`);
}

/** Requires all migrations. @throws UnfitDatabaseError if a migration is missing. */
async function requireSchema(url: string): Promise<void> {
  const database = new Database(url, { maxConnections: 1 });
  try {
    await checkSchema(database);
  } finally {
    await database.close();
  }
}
