import {
  messageContext,
  signatureContext,
  threadContext,
  webhookContext,
} from './bus/sealed-contexts.js';
import { gatewayTokenContext } from './accounts/installations/installations.js';
import { refreshTokenContext } from './accounts/accounts/identities.js';
import { ownKeyContext } from './ai/own-keys/own-keys.js';
import { credentialContext } from './agents/credentials/agent-credentials.js';
import { secretContext, type AgentSecretKind } from './agents/credentials/agent-secrets.js';
import { inputContext } from './agents/operations/operation-input.js';
import type { Database, TenantDatabase } from './platform/database/database.js';
import { answerContext } from './platform/idempotency/idempotency-store.js';
import { sessionTokenContext } from './money/sessions/session-token.js';
import { keyContext } from './money/wallets/wallet-keys.js';
import { ONLY_KEY } from './platform/secrets/key-ring.js';
import { SecretUnreadableError, type SecretBox } from './platform/secrets/secret-box.js';

/** Rows that are read at a time. */
const BATCH = 200;

/** A table column with sealed secrets. */
interface SealedColumn<Row extends object = object> {
  readonly table: string;
  /** SQL expression of the sealed text; null if there is none. */
  readonly sealed: string;
  /** SQL assignment that stores `$sealed`. */
  readonly put: string;
  /** Columns that form the context. */
  readonly columns: string;
  readonly contextOf: (row: Row) => string;
}

const column = <Row extends object>(where: SealedColumn<Row>): SealedColumn => ({
  ...where,
  // Rows contain exactly the columns that this entry selects.
  contextOf: (row) => where.contextOf(row as Row),
});

/** All columns with sealed secrets. */
export const SEALED_COLUMNS: readonly SealedColumn[] = [
  column<{ readonly agent_id: string; readonly kind: AgentSecretKind }>({
    table: 'agent_secrets',
    sealed: 'sealed',
    put: 'sealed = $sealed',
    columns: 'agent_id, kind',
    contextOf: (row) => secretContext(row.agent_id, row.kind),
  }),
  column<{ readonly agent_id: string; readonly name: string }>({
    table: 'agent_credentials',
    sealed: 'sealed',
    put: 'sealed = $sealed',
    columns: 'agent_id, name',
    contextOf: (row) => credentialContext(row.agent_id, row.name),
  }),
  column<{ readonly user_id: string; readonly provider: string }>({
    table: 'provider_keys',
    sealed: 'sealed_key',
    put: 'sealed_key = $sealed',
    columns: 'user_id, provider',
    contextOf: (row) => ownKeyContext(row.user_id, row.provider),
  }),
  column<{ readonly id: string }>({
    table: 'operations',
    sealed: `input ->> 'sealed'`,
    put: `input = jsonb_set(input, '{sealed}', to_jsonb($sealed::text))`,
    columns: 'id',
    contextOf: (row) => inputContext(row.id),
  }),
  column<{ readonly id: string }>({
    table: 'identities',
    sealed: 'refresh_token',
    put: 'refresh_token = $sealed',
    columns: 'id',
    contextOf: (row) => refreshTokenContext(row.id),
  }),
  column<{ readonly user_id: string; readonly address: string }>({
    table: 'wallets',
    sealed: 'sealed_key',
    put: 'sealed_key = $sealed',
    columns: 'user_id, address',
    contextOf: (row) => keyContext(row.user_id, row.address),
  }),
  column<{ readonly user_id: string }>({
    table: 'installations',
    sealed: 'sealed_gateway_token',
    put: 'sealed_gateway_token = $sealed',
    columns: 'user_id',
    contextOf: (row) => gatewayTokenContext(row.user_id),
  }),
  column<{ readonly id: string }>({
    table: 'payment_sessions',
    sealed: 'sealed_token',
    put: 'sealed_token = $sealed',
    columns: 'id',
    contextOf: (row) => sessionTokenContext(row.id),
  }),
  column<{ readonly caller: string; readonly route: string; readonly key: string }>({
    table: 'idempotency_keys',
    sealed: `body #>> '{}'`,
    put: 'body = to_jsonb($sealed::text)',
    columns: 'caller, route, key',
    contextOf: answerContext,
  }),
  column<{ readonly agent_id: string }>({
    table: 'bus_webhooks',
    sealed: 'sealed_secret',
    put: 'sealed_secret = $sealed',
    columns: 'agent_id',
    contextOf: (row) => webhookContext(row.agent_id),
  }),
  column<{ readonly from_agent: string; readonly message_id: string }>({
    table: 'bus_messages',
    sealed: 'sealed',
    put: 'sealed = $sealed',
    columns: 'from_agent, message_id',
    contextOf: (row) => messageContext(row.from_agent, row.message_id),
  }),
  column<{ readonly agent_a: string; readonly agent_b: string; readonly booking_id: string }>({
    table: 'bus_threads',
    sealed: 'sealed_terms',
    put: 'sealed_terms = $sealed',
    columns: 'agent_a, agent_b, booking_id',
    contextOf: (row) => threadContext(row.agent_a, row.agent_b, row.booking_id),
  }),
  column<{ readonly id: string }>({
    table: 'bus_signatures',
    sealed: 'sealed_text',
    put: 'sealed_text = $sealed',
    columns: 'id',
    contextOf: (row) => signatureContext(row.id),
  }),
];

/** The result for secrets that were sealed under other keys than the first. */
export interface Rotation {
  readonly rewrapped: number;
  /** Secrets still under other keys: no key of the ring opens them, or they were sealed during the rotation. */
  readonly left: number;
}

/**
 * Rewraps all sealed secrets under the first key of the ring while the platform runs, without overwriting
 * concurrent changes. It can be stopped at any time and resumed by another run.
 *
 * @param onBatch receives the number of rewrapped secrets so far.
 */
export async function rotateKeys(
  database: Database,
  box: SecretBox,
  onBatch: (rewrapped: number) => void = () => undefined,
): Promise<Rotation> {
  const platform = database.asPlatform();
  let rewrapped = 0;
  for (;;) {
    const before = rewrapped;
    for (const where of SEALED_COLUMNS) {
      for await (const count of rewrapColumn(platform, box, where)) {
        rewrapped += count;
        onBatch(rewrapped);
      }
    }
    // Rows changed during a pass may move behind it: another pass finds them.
    const left = await countLeft(platform, box);
    if (left === 0 || rewrapped === before) return { rewrapped, left };
  }
}

/** Makes one pass from the first row to the last. */
async function* rewrapColumn(
  platform: TenantDatabase,
  box: SecretBox,
  { table, sealed, put, columns, contextOf }: SealedColumn,
): AsyncGenerator<number> {
  for (let after: string | undefined = '(0,0)'; after !== undefined;) {
    const rows: { readonly at: string; readonly sealed: string }[] = await platform.query(
      `SELECT ctid::text AS at, ${sealed} AS sealed, ${columns} FROM ${table}
        WHERE ctid > $after::tid AND NOT starts_with(${sealed}, $prefix)
        ORDER BY ctid LIMIT ${BATCH}`,
      { after, prefix: box.prefix },
    );
    let count = 0;
    for (const row of rows) {
      const again = rewrap(box, row.sealed, contextOf(row));
      if (again === undefined) continue;
      // Only unchanged rows, so that concurrent changes are kept.
      const done = await platform.query(
        `UPDATE ${table} SET ${put} WHERE ctid = $at::tid AND ${sealed} = $old RETURNING 1`,
        { at: row.at, old: row.sealed, sealed: again },
      );
      count += done.length;
    }
    yield count;
    after = rows.length < BATCH ? undefined : rows.at(-1)?.at;
  }
}

function rewrap(box: SecretBox, sealed: string, context: string): string | undefined {
  try {
    return box.rewrap(sealed, context);
  } catch (error) {
    if (error instanceof SecretUnreadableError) return undefined; // counted at the end
    throw error;
  }
}

async function countLeft(platform: TenantDatabase, box: SecretBox): Promise<number> {
  const counts = await Promise.all(
    SEALED_COLUMNS.map(({ table, sealed }) =>
      platform.query<{ count: number }>(
        `SELECT count(*)::int AS count FROM ${table} WHERE NOT starts_with(${sealed}, $prefix)`,
        { prefix: box.prefix },
      ),
    ),
  );
  return counts.flat().reduce((sum, { count }) => sum + count, 0);
}

/** A key that some sealed secrets need. */
export interface KeyInUse {
  readonly id: string;
  /** Secrets sealed under the key. */
  readonly count: number;
  /** A secret of each column opens. */
  readonly opens: boolean;
}

interface KeyOfColumn {
  readonly id: string;
  readonly count: number;
  /** Place of one of the rows. */
  readonly at: string;
}

/** Returns the keys that sealed secrets need, and changes nothing. */
export async function keysInUse(database: Database, box: SecretBox): Promise<KeyInUse[]> {
  const platform = database.asPlatform();
  const used = new Map<string, KeyInUse>();
  for (const where of SEALED_COLUMNS) {
    for (const { id, count, at } of await keysOfColumn(platform, where)) {
      const before = used.get(id) ?? { id, count: 0, opens: true };
      const opens = before.opens && (await opensRow(platform, box, where, at));
      used.set(id, { id, count: before.count + count, opens });
    }
  }
  return [...used.values()];
}

function keysOfColumn(
  platform: TenantDatabase,
  { sealed, table }: SealedColumn,
): Promise<KeyOfColumn[]> {
  return platform.query<KeyOfColumn>(
    `SELECT coalesce(substring(${sealed} from '^v1\\.([a-zA-Z0-9-]+)\\.'), '${ONLY_KEY}') AS id,
            count(*)::int AS count, max(ctid)::text AS at
       FROM ${table} WHERE ${sealed} IS NOT NULL GROUP BY 1 ORDER BY 1`,
  );
}

/** Reports whether the row's secret can be decrypted, or the row was deleted. */
async function opensRow(
  platform: TenantDatabase,
  box: SecretBox,
  { columns, contextOf, sealed, table }: SealedColumn,
  at: string,
): Promise<boolean> {
  const [row]: { readonly sealed: string }[] = await platform.query(
    `SELECT ${sealed} AS sealed, ${columns} FROM ${table} WHERE ctid = $at::tid AND ${sealed} IS NOT NULL`,
    { at },
  );
  return !row || rewrap(box, row.sealed, contextOf(row)) !== undefined;
}
