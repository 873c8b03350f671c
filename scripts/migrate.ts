// A separate program, so that no serving process has the database owner's URL in its memory.
import { migrate, MigrationRefusedError } from '../src/platform/database/migrate.js';
import { roleOf } from '../src/platform/database/roles.js';
import { databaseSettings, migrationSettings } from '../src/platform/database/settings.js';
import { readAreas } from '../src/platform/environment/read.js';
import { runScript } from '../src/run-script.js';

await runScript(main, MigrationRefusedError);

async function main(): Promise<void> {
  const areas = { database: databaseSettings, migrations: migrationSettings };
  const { database, migrations } = readAreas(areas, process.env);
  if (migrations.ownerUrl === undefined) {
    console.log('DATABASE_OWNER_URL is not set: the schema is taken as it is.');
    return;
  }
  const done = await migrate(migrations.ownerUrl, roleOf(database.url));
  if (done.length > 0) console.log(`Migrated the database: ${done.join(', ')}`);
}
