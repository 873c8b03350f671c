import { Sequelize } from 'sequelize';
import { MIGRATIONS } from '../../../src/platform/database/migrations/index.js';
import { queryRows } from './catalog.js';

/** Brings an empty database to the schema before the named migration. */
export async function migrateToBefore(
  { ownerUrl, servingRole }: { readonly ownerUrl: string; readonly servingRole: string },
  migrationName: string,
): Promise<void> {
  const before = MIGRATIONS.slice(
    0,
    MIGRATIONS.findIndex(({ name }) => name === migrationName),
  );
  const sequelize = new Sequelize(ownerUrl, { logging: false });
  try {
    await sequelize.transaction(async (transaction) => {
      const queryInterface = sequelize.getQueryInterface();
      const context = { queryInterface, transaction, servingRole };
      for (const { migration } of before) await migration(context);
    });
  } finally {
    await sequelize.close();
  }
  await queryRows(ownerUrl, 'CREATE TABLE schema_migrations (name text PRIMARY KEY)');
  const done = before.map(({ name }) => `('${name}')`).join();
  await queryRows(ownerUrl, `INSERT INTO schema_migrations VALUES ${done}`);
}
