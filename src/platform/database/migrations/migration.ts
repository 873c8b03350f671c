import type { QueryInterface, Transaction } from 'sequelize';
import type { Policy } from '../schema/policies.js';

/** The connection, transaction and roles that a migration works with. */
export interface MigrationContext {
  /** Works as the owner of the schema. */
  readonly queryInterface: QueryInterface;
  /** The one transaction of the whole run: all of its migrations are committed, or none. */
  readonly transaction: Transaction;
  /** The role that serves requests, for GRANTs. */
  readonly servingRole: string;
}

/** One step of the schema. A released migration is never edited. */
export type Migration = (context: MigrationContext) => Promise<void>;

/** Runs statements as the owner, in the run's transaction. */
export async function run(context: MigrationContext, sql: string): Promise<void> {
  await context.queryInterface.sequelize.query(sql, { transaction: context.transaction });
}

/** Returns the serving role's name, quoted for SQL. */
export function servingRole(context: MigrationContext): string {
  return `"${context.servingRole.replaceAll('"', '""')}"`;
}

/**
 * Returns the statements that restrict a table to the rows that its policy admits. The policy is
 * restrictive: no policy of a later migration can widen it.
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

/** Returns a migration that makes one table with its indexes, and nothing else. */
export const newTable =
  (table: string, definition: string, grants: string, policy: Policy): Migration =>
  async (context) => {
    await run(context, definition);
    await protectTable(context, table, grants, policy);
  };

/** Lets only the serving role execute functions, which may read behind the policies. */
export async function grantExecute(
  context: MigrationContext,
  signatures: readonly string[],
): Promise<void> {
  for (const signature of signatures) {
    await run(
      context,
      `REVOKE ALL ON FUNCTION ${signature} FROM PUBLIC;
       GRANT EXECUTE ON FUNCTION ${signature} TO ${servingRole(context)};`,
    );
  }
}

/**
 * Returns the statement that creates `name(days, most)`, which deletes up to `most` rows that are older
 * than `days` and `leastDays`. Rows are visited in order of their ids, so times need no index.
 */
export const removeOldestSql = (name: string, table: string, time: string, leastDays: number) =>
  `CREATE FUNCTION ${name}(days integer, most integer) RETURNS integer
     LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
     $$WITH oldest AS (
         SELECT id, ${time} AS at FROM public.${table} ORDER BY id LIMIT most FOR UPDATE SKIP LOCKED
       ), gone AS (
         DELETE FROM public.${table} t USING oldest o
          WHERE t.id = o.id AND o.at < now() - make_interval(days => greatest(days, ${leastDays}))
          RETURNING t.id)
       SELECT count(*)::integer FROM gone$$;`;
