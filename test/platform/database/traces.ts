import type { Database, Statements } from '../../../src/platform/database/database.js';
import { TABLES } from '../../../src/platform/database/models.js';
import { queryRows } from './catalog.js';
import { insertSql, ROWS } from './rows.js';

/** Tables that keep usage, credits and actions under the id of a deleted account. */
const KEEPING = [
  'usage_logs',
  'usage_daily',
  'usage_pending',
  'tool_usage_daily',
  'usage_hourly',
  'token_quotas',
  'quota_reservations',
  'ledger_accounts',
  'ledger_transfers',
  'ledger_holds',
  'audit_log',
  'payment_claims',
  'checkouts',
  'subscription_checkouts',
];

/** Tables of no account: hosts, digests of strangers' input, pending events, proofs, payments. */
const OF_NOBODY = [
  ...['hosts', 'sign_in_attempts', 'used_nonces', 'risc_events', 'reset_mail_stops'],
  ...['processor_events', 'invite_codes', 'data_feeds', 'provider_webhooks', 'video_days'],
  ...['farcaster_tokens', 'payments', 'transactions', 'payment_vouchers', 'payment_settlements'],
];

const EVERY_TABLE = Object.fromEntries(TABLES.map(({ name }) => [name, []]));

export interface Person {
  readonly id: string;
  readonly email: string;
  readonly name: string;
}

/** Adds a row of the person to every table that can have one. */
export async function leaveTraces(ownerUrl: string, { id, email }: Person): Promise<void> {
  const particulars: Readonly<Record<string, Readonly<Record<string, string>>>> = {
    admin_links: { email },
    mails: { address: email },
    notifications: { user_id: id },
  };
  const inserts = Object.entries(ROWS)
    .filter(([table]) => !['users', 'account_deletions', ...OF_NOBODY].includes(table))
    .map(([table, row]) => insertSql(table, { ...row(id, 1), ...particulars[table] }));
  const detail = JSON.stringify({ email, amount: '1.000000' });
  inserts.push(
    insertSql('audit_log', {
      ...{ actor: id, user_id: id, action: 'x402.pay', subject: 'a payment', detail },
    }),
  );
  await queryRows(ownerUrl, inserts.join(';'));
}

/** Returns rows of all tables that still hold data of the person. */
export async function tracesOf(database: Database, person: Person): Promise<string[]> {
  const { id, email, name } = person;
  const found = TABLES.map(({ name: table }) => {
    const marks = KEEPING.includes(table) ? [email, name] : [id, email, name];
    const holds = marks.map((mark) => `strpos(t::text, '${mark.replaceAll("'", "''")}') > 0`);
    return `SELECT '${table}: ' || t::text AS trace FROM ${table} t WHERE ${holds.join(' OR ')}`;
  });
  const all = found.join(' UNION ALL ');
  const rows = await database.asPlatform().query<{ trace: string }>(all);
  return rows.map(({ trace }) => trace);
}

/**
 * Returns every row as text after its table's name.
 *
 * @param tables the tables to read, with the columns to leave out.
 */
export async function textsOfRows(
  db: Statements,
  tables: Readonly<Record<string, readonly string[]>> = EVERY_TABLE,
): Promise<string[]> {
  const all = Object.entries(tables).map(([name, without]) => {
    const left = without.map((column) => `'${column}'`).join();
    return `SELECT '${name} ' || (to_jsonb(t) - ARRAY[${left}]::text[])::text AS text FROM ${name} t`;
  });
  const rows = await db.query<{ text: string }>(all.join(' UNION ALL '));
  return rows.map(({ text }) => text);
}
