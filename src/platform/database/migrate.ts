import { QueryTypes, Sequelize, type Transaction } from 'sequelize';
import { Umzug, type UmzugStorage } from 'umzug';
import { MIGRATIONS } from './migrations/index.js';
import type { MigrationContext } from './migrations/migration.js';

/** Key of the advisory lock that lets one process migrate at a time; an arbitrary number. */
const MIGRATION_LOCK = 4_106_718_310;

const CONNECT_TIMEOUT_MS = 5_000;
/** Milliseconds for one statement, and so also for the wait for another migrating process. */
const STATEMENT_TIMEOUT_MS = 300_000;

/** An error that an operator must fix before the schema can be migrated; the message says what to do. */
export class MigrationRefusedError extends Error {}

/** The serving role could bypass row-level security, which no schema can prevent. */
export class UnsafeServingRoleError extends MigrationRefusedError {
  constructor(role: string, why: string) {
    super(`The database role "${role}" must not serve requests: it ${why}`);
    this.name = 'UnsafeServingRoleError';
  }
}

/** An unreleased version migrated this database, so it cannot be migrated further. */
export class DevelopmentDatabaseError extends MigrationRefusedError {
  constructor() {
    super(
      'The database was made by a development version: remove .data, or drop the ' +
        'database, to start with an empty one',
    );
    this.name = 'DevelopmentDatabaseError';
  }
}

/**
 * Migrates the schema as its owner. Two processes may run this at once; the second waits. A failed
 * migration rolls back the whole run.
 *
 * @param servingRole the role of `DATABASE_URL`, which gets the GRANTs.
 * @returns the names of the migrations that ran.
 */
export async function migrate(ownerUrl: string, servingRole: string): Promise<string[]> {
  return asOwner(ownerUrl, servingRole, async (context) => {
    await checkServingRole(context);
    const done = await migrations(context).up();
    return done.map(({ name }) => name);
  });
}

/** Reverts all migrations and deletes all data. Returns the names in the order reverted. */
export async function migrateDown(ownerUrl: string, servingRole: string): Promise<string[]> {
  return asOwner(ownerUrl, servingRole, async (context) => {
    const undone = await migrations(context).down({ to: 0 });
    await query(context, 'DROP TABLE schema_migrations');
    return undone.map(({ name }) => name);
  });
}

async function asOwner<T>(
  ownerUrl: string,
  servingRole: string,
  work: (context: MigrationContext) => Promise<T>,
): Promise<T> {
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
      const context = { queryInterface: sequelize.getQueryInterface(), transaction, servingRole };
      await query(context, `SELECT pg_advisory_xact_lock(${MIGRATION_LOCK})`);
      await query(context, 'CREATE TABLE IF NOT EXISTS schema_migrations (name text PRIMARY KEY)');
      await checkVersion(context);
      return await work(context);
    });
  } finally {
    await sequelize.close();
  }
}

function migrations(context: MigrationContext): Umzug<MigrationContext> {
  return new Umzug({
    context,
    storage,
    logger: undefined,
    migrations: MIGRATIONS.map(({ name, migration }) => ({
      name,
      up: () => migration.up(context),
      down: () => migration.down(context),
    })),
  });
}

/** Records migrations in the run's own transaction, unlike Umzug's storage. */
const storage: UmzugStorage<MigrationContext> = {
  async logMigration({ name, context }) {
    await query(context, 'INSERT INTO schema_migrations (name) VALUES ($1)', [name]);
  },
  async unlogMigration({ name, context }) {
    await query(context, 'DELETE FROM schema_migrations WHERE name = $1', [name]);
  },
  async executed({ context }) {
    const rows = await query<{ name: string }>(
      context,
      'SELECT name FROM schema_migrations ORDER BY name',
    );
    return rows.map(({ name }) => name);
  },
};

/** Checks that no development version migrated the database: their migrations have four-digit numbers. */
async function checkVersion(context: MigrationContext): Promise<void> {
  const done = await storage.executed({ context });
  if (done.some((name) => /^\d{4}-/.test(name))) throw new DevelopmentDatabaseError();
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
