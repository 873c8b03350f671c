import { QueryTypes, Sequelize, type Transaction } from 'sequelize';
import { MIGRATIONS } from './migrations/index.js';
import { servingRole, type MigrationContext } from './migrations/migration.js';

/** Key of the advisory lock that lets one process migrate at a time; an arbitrary number. */
const MIGRATION_LOCK = 4_106_718_310;

const CONNECT_TIMEOUT_MS = 5_000;
/** Milliseconds for one statement, and so also for the wait for another migrating process. */
const STATEMENT_TIMEOUT_MS = 300_000;

/** A refusal to migrate. Its message is one sentence that says what to do. */
export class MigrationRefusedError extends Error {
  override readonly name: string = 'MigrationRefusedError';
}

/** The serving role could bypass row-level security, which no schema can prevent. */
export class UnsafeServingRoleError extends MigrationRefusedError {
  override readonly name = 'UnsafeServingRoleError';

  constructor(role: string, why: string) {
    super(`The database role "${role}" must not serve requests: it ${why}`);
  }
}

/** The database was migrated by a version that was never released, so its schema cannot be continued. */
export class DevelopmentDatabaseError extends MigrationRefusedError {
  override readonly name = 'DevelopmentDatabaseError';

  constructor() {
    super(
      'The database was made by a development version of the schema; delete it (in development: the ' +
        'folder .data) to start with an empty one',
    );
  }
}

/**
 * Brings the schema up to date, as its owner, in one transaction, and returns the migrations that ran.
 * Concurrent processes wait for each other. The role of `DATABASE_URL` gets the GRANTs.
 */
export async function migrate(ownerUrl: string, servedBy: string): Promise<string[]> {
  const sequelize = new Sequelize(ownerUrl, {
    dialect: 'postgres',
    logging: false,
    pool: { max: 1 },
    dialectOptions: {
      application_name: 'agent-platform-service migrate',
      connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
      statement_timeout: STATEMENT_TIMEOUT_MS,
    },
  });
  try {
    return await sequelize.transaction(async (transaction: Transaction) => {
      const context = {
        queryInterface: sequelize.getQueryInterface(),
        transaction,
        servingRole: servedBy,
      };
      await query(context, `SELECT pg_advisory_xact_lock(${MIGRATION_LOCK})`);
      await checkServingRole(context);
      return await runPending(context);
    });
  } finally {
    await sequelize.close();
  }
}

async function runPending(context: MigrationContext): Promise<string[]> {
  await query(context, 'CREATE TABLE IF NOT EXISTS schema_migrations (name text PRIMARY KEY)');
  await addMark(context);
  // Serving processes compare the schema with their release at their start.
  await query(context, `GRANT SELECT ON schema_migrations TO ${servingRole(context)}`);
  const rows = await query<{ name: string }>(context, 'SELECT name FROM schema_migrations');
  const done = rows.map(({ name }) => name).toSorted();
  // A database of a newer release has all of these migrations and more, and passes.
  const isKnown = MIGRATIONS.slice(0, done.length).every(({ name }, place) => name === done[place]);
  if (!isKnown) throw new DevelopmentDatabaseError();

  const pending = MIGRATIONS.slice(done.length);
  for (const { name, migration, breaksOlder = false } of pending) {
    await migration(context);
    const values = [name, String(breaksOlder)];
    await query(context, 'INSERT INTO schema_migrations VALUES ($1, $2::boolean)', values);
  }
  return pending.map(({ name }) => name);
}

/** Adds the mark of migrations that break older releases, only once: an ALTER locks the table. */
async function addMark(context: MigrationContext): Promise<void> {
  const found = await query<{ attname: string }>(
    context,
    `SELECT attname FROM pg_attribute
      WHERE attrelid = 'schema_migrations'::regclass AND attname = 'breaks_older'`,
  );
  if (found.length > 0) return;
  await query(
    context,
    'ALTER TABLE schema_migrations ADD COLUMN breaks_older boolean NOT NULL DEFAULT false',
  );
}

async function checkServingRole(context: MigrationContext): Promise<void> {
  const [role] = await query<{ bypasses: boolean; owner: boolean }>(
    context,
    `SELECT rolsuper OR rolbypassrls AS bypasses,
            pg_has_role(oid, current_user, 'MEMBER') AS owner
       FROM pg_roles WHERE rolname = $1`,
    [context.servingRole],
  );
  if (!role) throw new UnsafeServingRoleError(context.servingRole, 'does not exist');
  if (role.bypasses) {
    throw new UnsafeServingRoleError(context.servingRole, 'bypasses row-level security');
  }
  if (role.owner) throw new UnsafeServingRoleError(context.servingRole, 'owns the tables');
}

async function query<Row extends object>(
  context: MigrationContext,
  sql: string,
  bind: string[] = [],
): Promise<Row[]> {
  const { queryInterface, transaction } = context;
  return queryInterface.sequelize.query<Row>(sql, { type: QueryTypes.SELECT, transaction, bind });
}
