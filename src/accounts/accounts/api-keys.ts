import { randomBytes, randomUUID } from 'node:crypto';
import bcrypt from 'bcrypt';
import { recordAudit } from '../../platform/audit/audit.js';
import type { TenantDatabase } from '../../platform/database/database.js';
import type { ApiKeyRow } from '../../platform/database/models.js';
import { ConflictError, NotFoundError } from '../../lib/errors.js';
import { tokenHash } from '../../platform/secrets/token-hash.js';
import { keyHashing } from './hashing-queue.js';
import { requireOpen } from './sessions.js';

/** The longest name of a key, in characters. */
export const MAX_API_KEY_NAME = 64;

/** Keys that one user can have: all of them fit into one list. */
export const MAX_API_KEYS = 50;

const PREFIX = 'sk_';

/** How much of its beginning a key is found by (spec 4.5). */
const PREFIX_LENGTH = 10;
const RANDOM_BYTES = 32;
/** bcrypt reads 72 bytes and no more; a key has 46. */
const BCRYPT_COST = 10;
/** Letters of the random part that the preview shows, of 43: 48 bits of 256. */
const SHOWN_AT_EACH_END = 4;

/** A key as its owner sees it. */
export type ApiKey = Pick<ApiKeyRow, 'id' | 'name' | 'keyPreview' | 'createdAt' | 'lastUsed'>;

/** A key at the one moment when it is known. */
export type NewApiKey = Pick<ApiKeyRow, 'id' | 'name' | 'createdAt'> & { readonly key: string };

/** Who does something to a user's keys: the user, in a request. */
export interface ApiKeyOwner {
  readonly userId: string;
  readonly requestId: string;
}

/** A key that is asked for. */
export interface AskedKey {
  readonly name: string;
  /** Whose turn its hashing takes. */
  readonly site: string;
  /** In which a person asks for it: one that ends meanwhile leaves no key behind. */
  readonly sessionId?: string;
}

/** What of a key's beginning is stored. */
export const prefixOf = (key: string): string => key.slice(0, PREFIX_LENGTH);

const SHOWN = ['id', 'name', 'keyPreview', 'createdAt', 'lastUsed'] as const;

/**
 * Makes a key: `sk_` and 256 random bits in base64url. Only hashes of it are stored. When an answer
 * is lost, a key stays that nobody knows; its owner finds it in the list as never used.
 *
 * @throws UnauthorizedError when the session has ended,
 *   ConflictError with `current` and `limit` when the user has as many as there may be,
 *   TooManyRequestsError when too many wait for their turn.
 */
export async function createApiKey(
  tenant: TenantDatabase,
  { userId, requestId }: ApiKeyOwner,
  { name, site, sessionId }: AskedKey,
): Promise<NewApiKey> {
  const random = randomBytes(RANDOM_BYTES).toString('base64url');
  const key = PREFIX + random;
  // Before the transaction: a connection is not held while the processor is busy.
  const keyHash = await keyHashing.run(site, () => bcrypt.hash(key, BCRYPT_COST));
  return tenant.transaction(async (db) => {
    // One creation for a user after the other, so that two at the cap admit one.
    await db.lock(`api-keys-of:${userId}`);
    if (sessionId !== undefined) await requireOpen(db, { userId, sessionId });
    const current = await db.ApiKey.count({ where: { userId } });
    if (current >= MAX_API_KEYS) {
      const facts = { current, limit: MAX_API_KEYS };
      throw new ConflictError('API key limit reached: delete one first', facts);
    }
    const row = await db.ApiKey.create({
      id: randomUUID(),
      userId,
      name,
      keyPreview: preview(random),
      keyHash,
      lookupHash: tokenHash(key),
      keyPrefix: prefixOf(key),
      lastUsed: null,
    });
    const audit = { actor: userId, userId, requestId, detail: { name } };
    await recordAudit(db, { ...audit, action: 'api-key.create', subject: row.id });
    return { id: row.id, name, key, createdAt: row.createdAt };
  });
}

/** All of a user's keys, oldest first. */
export async function listApiKeys(tenant: TenantDatabase, userId: string): Promise<ApiKey[]> {
  return tenant.transaction((db) =>
    db.ApiKey.findAll({
      attributes: SHOWN,
      where: { userId },
      order: [
        ['createdAt', 'ASC'],
        ['id', 'ASC'],
      ],
      limit: MAX_API_KEYS,
    }),
  );
}

/** @throws NotFoundError also when it is another user's. */
export async function getApiKey(tenant: TenantDatabase, id: string): Promise<ApiKey> {
  const key = await tenant.transaction((db) => db.ApiKey.findByPk(id, { attributes: SHOWN }));
  if (!key) throw new NotFoundError('API key not found');
  return key;
}

/**
 * Deletes a key, which opens nothing from then on.
 *
 * @throws NotFoundError also when it is another user's.
 */
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

function preview(random: string): string {
  const [start, end] = [random.slice(0, SHOWN_AT_EACH_END), random.slice(-SHOWN_AT_EACH_END)];
  return `${PREFIX}${start}...${end}`;
}
