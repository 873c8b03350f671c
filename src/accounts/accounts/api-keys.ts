import { randomBytes, randomUUID } from 'node:crypto';
import bcrypt from 'bcrypt';
import { recordAudit } from '../../platform/audit/audit.js';
import type {
  Database,
  TenantDatabase,
  TenantTransaction,
} from '../../platform/database/database.js';
import type { ApiKeyRow } from '../../platform/database/models.js';
import { ConflictError, NotFoundError } from '../../lib/errors.js';
import { tokenHash } from '../../platform/secrets/token-hash.js';
import { DEFAULT_KEY_SCOPES, KEY_SCOPES, type KeyScope } from '../../types/key-scopes.js';
import { requestNotice } from './account-notices.js';
import { API_KEY_COST } from './hash-cost.js';
import { keyHashing } from './hashing-limiters.js';
import { requireOpenSession } from './sessions.js';

export const MAX_API_KEY_NAME = 64;

/** Maximum number of keys per user: all of them fit into one list. */
export const MAX_API_KEYS = 50;

const PREFIX = 'sk_';

/** Leading characters by which a key is found (spec 4.5). */
const PREFIX_LENGTH = 10;
/** Bcrypt reads at most 72 bytes; a key has 46. */
const RANDOM_BYTES = 32;
/** Characters of the random part shown at each end of the preview. Both ends reveal 48 of 256 bits. */
const SHOWN_AT_EACH_END = 4;

export type ApiKey = Pick<
  ApiKeyRow,
  'id' | 'name' | 'keyPreview' | 'scopes' | 'createdAt' | 'lastUsed' | 'suspendedAt'
>;

/** A new key, whose text is shown only once. */
export type NewApiKey = Pick<ApiKeyRow, 'id' | 'name' | 'scopes' | 'createdAt'> & {
  readonly key: string;
};

export interface ApiKeyOwner {
  readonly userId: string;
  readonly requestId: string;
}

export interface ApiKeyRequest {
  readonly name: string;
  /** All but `money` by default. */
  readonly scopes?: readonly KeyScope[] | undefined;
  /** Client network under which the hashing is queued. */
  readonly site: string;
  /** The session that requests the key. No key is created once the session has ended. */
  readonly sessionId?: string;
}

export const prefixOf = (key: string): string => key.slice(0, PREFIX_LENGTH);

const SHOWN = [
  'id',
  'name',
  'keyPreview',
  'scopes',
  'createdAt',
  'lastUsed',
  'suspendedAt',
] as const;

/**
 * Creates a key: `sk_` and 256 random bits in base64url, of which only hashes are stored. Notifies the owner.
 * @throws UnauthorizedError when the session has ended, ConflictError with `current` and `limit` at the key
 * limit, TooManyRequestsError when the hashing queue is full.
 */
export async function createApiKey(
  database: Database,
  { userId, requestId }: ApiKeyOwner,
  { name, scopes: wanted = DEFAULT_KEY_SCOPES, site, sessionId }: ApiKeyRequest,
): Promise<NewApiKey> {
  const scopes = KEY_SCOPES.filter((scope) => wanted.includes(scope));
  const random = randomBytes(RANDOM_BYTES).toString('base64url');
  const key = PREFIX + random;
  // Hashed before the transaction, so that no connection is held during CPU work.
  const keyHash = await keyHashing.run({ owner: site }, () => bcrypt.hash(key, API_KEY_COST));
  // As the platform, because tenants have no access to the mails.
  return database.asPlatform().transaction(async (db) => {
    // Serializes a user's key creations, so that two concurrent requests cannot exceed the limit.
    await db.lock(`api-keys-of:${userId}`);
    const addedBy =
      sessionId === undefined ? null : await requireOpenSession(db, { userId, sessionId });
    const current = await db.ApiKey.count({ where: { userId } });
    if (current >= MAX_API_KEYS) {
      const facts = { current, limit: MAX_API_KEYS };
      throw new ConflictError(
        'API key limit reached: delete one first',
        'KEY_LIMIT_REACHED',
        facts,
      );
    }
    const row = await db.ApiKey.create({
      id: randomUUID(),
      userId,
      name,
      scopes,
      keyPreview: preview(random),
      keyHash,
      lookupHash: tokenHash(key),
      keyPrefix: prefixOf(key),
      lastUsed: null,
      addedBy,
    });
    const audit = { actor: userId, userId, requestId, detail: { name, scopes } };
    await recordAudit(db, { ...audit, action: 'api-key.create', subject: row.id });
    await requestNotice(db, userId, 'key-added');
    return { id: row.id, name, key, scopes, createdAt: row.createdAt };
  });
}

/** Lists all of a user's keys, oldest first. */
export async function listApiKeys(tenant: TenantDatabase, userId: string): Promise<ApiKey[]> {
  return tenant.transaction((db) =>
    db.ApiKey.findAll({
      attributes: SHOWN,
      where: { userId },
      order: ['createdAt', 'id'],
      limit: MAX_API_KEYS,
    }),
  );
}

/** Returns a key of the user. @throws NotFoundError also when the key is another user's. */
export async function getApiKey(tenant: TenantDatabase, id: string): Promise<ApiKey> {
  const key = await tenant.transaction((db) => db.ApiKey.findByPk(id, { attributes: SHOWN }));
  if (!key) throw new NotFoundError('API key not found');
  return key;
}

/** Deletes a key; it is invalid from then on. @throws NotFoundError also when the key is another user's. */
export async function deleteApiKey(
  tenant: TenantDatabase,
  { userId, requestId }: ApiKeyOwner,
  id: string,
): Promise<void> {
  await tenant.transaction(async (db) => {
    const deleted = await db.ApiKey.destroy({ where: { id, userId } });
    if (deleted === 0) throw new NotFoundError('API key not found');
    const audit = { actor: userId, userId, requestId };
    await recordAudit(db, { ...audit, action: 'api-key.delete', subject: id });
  });
}

/** Ends all keys of an account. The account's row must be locked, against keys that are being made. */
export async function endApiKeys(
  db: TenantTransaction,
  userId: string,
  { suspendedToo } = { suspendedToo: true },
): Promise<void> {
  await db.ApiKey.destroy({ where: { userId, ...(!suspendedToo && { suspendedAt: null }) } });
}

function preview(random: string): string {
  const [start, end] = [random.slice(0, SHOWN_AT_EACH_END), random.slice(-SHOWN_AT_EACH_END)];
  return `${PREFIX}${start}...${end}`;
}
