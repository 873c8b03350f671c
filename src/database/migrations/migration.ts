import type { QueryInterface, Transaction } from 'sequelize';

/** What a migration works with. */
export interface MigrationContext {
  /** The owner's. */
  readonly queryInterface: QueryInterface;
  /** The one transaction of the whole run: all of its migrations hold, or none. */
  readonly transaction: Transaction;
  /** The role that serves requests, for GRANTs. */
  readonly servingRole: string;
}

/** One step of the schema and the way back. A released migration is never edited. */
export interface Migration {
  up(context: MigrationContext): Promise<void>;
  down(context: MigrationContext): Promise<void>;
}

/** Runs statements as the owner, in the run's transaction. */
export async function run(context: MigrationContext, sql: string): Promise<void> {
  await context.queryInterface.sequelize.query(sql, { transaction: context.transaction });
}

/** The serving role's name, quoted for SQL. */
export function servingRole(context: MigrationContext): string {
  return `"${context.servingRole.replaceAll('"', '""')}"`;
}

/**
 * Grants the serving role the named privileges on a table, and restricts it to the rows that
 * `visible` admits. The restriction is a policy of its own, of the restrictive kind: no policy
 * that a later migration adds can widen it.
 */
export async function protectTable(
  context: MigrationContext,
  table: string,
  grants: string,
  visible: string,
): Promise<void> {
  await run(
    context,
    `ALTER TABLE ${table} ENABLE ROW LEVEL SECURITY;
     CREATE POLICY ${table}_access ON ${table} USING (true) WITH CHECK (true);
     CREATE POLICY ${table}_tenant ON ${table} AS RESTRICTIVE
       USING (${visible}) WITH CHECK (${visible});
     GRANT ${grants} ON ${table} TO ${servingRole(context)};`,
  );
}

/** True while the platform itself is at work across tenants. */
export const PLATFORM = `current_setting('app.platform', true) = 'on'`;

/** True for the rows of the transaction's user. Unset, or empty, is nobody. */
export const ownedThrough = (column: string) =>
  `${column} = current_setting('app.user_id', true) OR ${PLATFORM}`;

/** A function that looks behind the policies, for the serving role alone. */
export async function grantExecute(context: MigrationContext, signature: string): Promise<void> {
  await run(
    context,
    `REVOKE ALL ON FUNCTION ${signature} FROM PUBLIC;
     GRANT EXECUTE ON FUNCTION ${signature} TO ${servingRole(context)};`,
  );
}
