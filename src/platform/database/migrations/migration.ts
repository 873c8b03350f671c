import type { QueryInterface, Transaction } from 'sequelize';
import type { Policy } from '../schema/policies.js';

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
 * Restricts a table to the rows that its policy admits. The restriction is one of the restrictive
 * kind: nothing that a later migration adds can widen it.
 */
export const policySql = ({ name, policy }: { name: string; policy: Policy }) =>
  `ALTER TABLE ${name} ENABLE ROW LEVEL SECURITY;
   CREATE POLICY ${name}_access ON ${name} USING (true) WITH CHECK (true);
   CREATE POLICY ${name}_tenant ON ${name} AS RESTRICTIVE
     USING (${policy.visible}) WITH CHECK (${policy.visible});`;

/** Grants the serving role the named privileges on a table, within the table's policy. */
export async function protectTable(
  context: MigrationContext,
  table: string,
  grants: string,
  policy: Policy,
): Promise<void> {
  await run(
    context,
    `${policySql({ name: table, policy })}
     GRANT ${grants} ON ${table} TO ${servingRole(context)};`,
  );
}

/** Restricts a table to the rows of another policy. */
export async function replacePolicy(
  context: MigrationContext,
  table: string,
  { visible }: Policy,
): Promise<void> {
  const policy = `ALTER POLICY ${table}_tenant ON ${table} USING (${visible}) WITH CHECK (${visible});`;
  await run(context, policy);
}

/** A migration that makes one table with its indexes, and no more. */
export const newTable = (
  table: string,
  definition: string,
  grants: string,
  policy: Policy,
): Migration => ({
  async up(context) {
    await run(context, definition);
    await protectTable(context, table, grants, policy);
  },

  async down(context) {
    await run(context, `DROP TABLE ${table};`);
  },
});

/** A function that looks behind the policies, for the serving role alone. */
export async function grantExecute(context: MigrationContext, signature: string): Promise<void> {
  await run(
    context,
    `REVOKE ALL ON FUNCTION ${signature} FROM PUBLIC;
     GRANT EXECUTE ON FUNCTION ${signature} TO ${servingRole(context)};`,
  );
}
