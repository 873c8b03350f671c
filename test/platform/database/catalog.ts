import type pg from 'pg';
import { withSuperuser } from '../../../src/platform/database/roles.js';

/** Returns rows of the catalog as text, one line for each fact, to compare whole schemas. */
export async function catalogFacts(url: string, sql: string): Promise<string[]> {
  const rows = await queryRows<{ fact: string }>(url, sql);
  return rows.map(({ fact }) => fact).sort();
}

/** Runs one statement on its own connection. */
export async function queryRows<Row extends pg.QueryResultRow>(
  url: string,
  sql: string,
): Promise<Row[]> {
  return withSuperuser(url, async (client) => (await client.query<Row>(sql)).rows);
}

const OURS = `c.relnamespace = 'public'::regnamespace AND c.relname <> 'schema_migrations'`;

export const COLUMNS = `
  SELECT concat_ws(' ', c.relname, a.attname, format_type(a.atttypid, a.atttypmod),
                   CASE WHEN a.attnotnull THEN 'not null' END,
                   pg_get_expr(d.adbin, d.adrelid)) AS fact
    FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
    LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
   WHERE ${OURS} AND c.relkind = 'r' AND a.attnum > 0 AND NOT a.attisdropped`;

export const INDEXES = `
  SELECT pg_get_indexdef(i.indexrelid) AS fact
    FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid WHERE ${OURS}`;

export const POLICIES = `
  SELECT concat_ws(' ', p.tablename, p.policyname, p.permissive, p.cmd, p.roles, p.qual,
                   p.with_check) AS fact
    FROM pg_policies p`;

/** Counts a database's connections that wait for a lock. */
export async function waitingConnections(url: string): Promise<number> {
  const found = await queryRows(
    url,
    `SELECT FROM pg_locks l JOIN pg_stat_activity a USING (pid)
      WHERE NOT l.granted AND a.datname = current_database()`,
  );
  return found.length;
}
