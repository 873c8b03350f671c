import { ConflictError } from '../../lib/errors.js';
import { recordAudit } from '../../platform/audit/audit.js';
import type { Requester } from '../../platform/audit/requester.js';
import type { Database, Statements, TenantDatabase } from '../../platform/database/database.js';
import type { SecretBox } from '../../platform/secrets/secret-box.js';

export const INSTALLATION_MODES = ['home', 'link', 'cloud'] as const;

export type InstallationMode = (typeof INSTALLATION_MODES)[number];

/** Maximum number of installations whose id belongs to no account, so that its ownership cannot be proven. */
export const MAX_OF_NO_ACCOUNT = 10_000;

/** Minutes without a sign of life after which an installation is inactive. */
const INACTIVE_MINUTES = 15;

export interface NewInstallation {
  readonly userId: string;
  readonly mode: InstallationMode;
  /** The token before stays if none is given. */
  readonly gatewayToken?: string | undefined;
}

export interface Installation {
  readonly userId: string;
  readonly mode: InstallationMode;
  readonly registeredAt: Date;
  readonly lastSeen: Date;
  readonly status: 'active' | 'inactive';
}

/** A position in the list; the time is exact to the microsecond. */
export interface InstallationPlace {
  readonly lastSeen: string;
  readonly userId: string;
}

export const gatewayTokenContext = (userId: string): string =>
  `installation:${userId}:gateway-token`;

const REGISTER_AGAIN = `
  UPDATE installations SET mode = $mode, last_seen = now(), status = 'active',
         sealed_gateway_token = coalesce($token, sealed_gateway_token)
   WHERE user_id = $userId RETURNING user_id`;

/** A concurrent registration of the same id may be first. */
const REGISTER = `
  INSERT INTO installations AS i (user_id, mode, registered_at, last_seen, status, sealed_gateway_token)
    VALUES ($userId, $mode, now(), now(), 'active', $token)
    ON CONFLICT (user_id) DO UPDATE SET
      mode = excluded.mode, last_seen = now(), status = 'active',
      sealed_gateway_token = coalesce(excluded.sealed_gateway_token, i.sealed_gateway_token)`;

const OF_NO_ACCOUNT = `
  SELECT count(*)::integer AS count FROM installations i
   WHERE NOT EXISTS (SELECT FROM users u WHERE u.id = i.user_id)`;

/**
 * Registers an installation, or registers it again. The user is not verified, and need not be an account.
 * @throws ConflictError beyond the limit of installations of no account
 */
export async function registerInstallation(
  database: Database,
  secrets: SecretBox,
  { gatewayToken, mode, userId }: NewInstallation,
  { actor, requestId }: Pick<Requester, 'actor' | 'requestId'>,
): Promise<void> {
  const token =
    gatewayToken === undefined ? null : secrets.seal(gatewayToken, gatewayTokenContext(userId));
  const values = { mode, token, userId };
  await database.asPlatform().transaction(async (db) => {
    const again = await db.query(REGISTER_AGAIN, values);
    if (again.length === 0) {
      await requirePlace(db, userId);
      await db.query(REGISTER, values);
    }
    const action = 'installation.register';
    await recordAudit(db, { actor, action, subject: userId, requestId, detail: { mode } });
  });
}

async function requirePlace(
  db: Statements & { lock(name: string): Promise<void> },
  userId: string,
): Promise<void> {
  const account = await db.query('SELECT FROM users WHERE id = $userId', { userId });
  if (account.length > 0) return;
  // Concurrent registrations must not exceed the limit together.
  await db.lock('installations of no account');
  const [found] = await db.query<{ count: number }>(OF_NO_ACCOUNT);
  const current = found?.count ?? 0;
  if (current < MAX_OF_NO_ACCOUNT) return;
  const facts = { current, limit: MAX_OF_NO_ACCOUNT };
  const message = 'There are too many installations whose id is no account';
  throw new ConflictError(message, 'INSTALLATION_LIMIT_REACHED', facts);
}

const listSql = (after: boolean) => `
  SELECT user_id AS "userId", mode, registered_at AS "registeredAt", last_seen AS "lastSeen",
         to_char(last_seen AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS place,
         CASE WHEN last_seen > now() - interval '${INACTIVE_MINUTES} minutes'
              THEN 'active' ELSE 'inactive' END AS status
    FROM installations
   ${after ? 'WHERE (last_seen, user_id) < ($lastSeen::timestamptz, $userId)' : ''}
   ORDER BY last_seen DESC, user_id DESC LIMIT $most`;

/** Lists the tenant's installations, or all for the platform, last seen first. */
export async function listInstallations(
  tenant: TenantDatabase,
  { limit, after }: { readonly limit: number; readonly after?: InstallationPlace | undefined },
): Promise<{
  readonly items: readonly Installation[];
  readonly next?: InstallationPlace | undefined;
}> {
  const found = await tenant.query<Installation & { readonly place: string }>(
    listSql(after !== undefined),
    { most: limit + 1, ...after },
  );
  // An extra row shows whether there is a next page.
  const rows = found.slice(0, limit);
  const last = found.length > limit ? rows.at(-1) : undefined;
  return {
    items: rows.map(({ place, ...item }) => item),
    next: last && { lastSeen: last.place, userId: last.userId },
  };
}
