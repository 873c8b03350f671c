import { createHash } from 'node:crypto';
import { refreshTokenContext } from '../accounts/identities.js';
import type { TenantTransaction } from '../../platform/database/database.js';
import { SecretUnreadableError, type SecretBox } from '../../platform/secrets/secret-box.js';
import type { ReportedEvent } from '../../types/security-events.js';

/** Sealed tokens that are opened at a time. */
const BATCH = 500;

/** Shortest prefix of a token that counts; a shorter one would match many. */
const MIN_PREFIX = 16;

const sha512 = (data: string | Buffer) => createHash('sha512').update(data).digest();

type IsNamed = (token: string, name: string) => boolean;

/** Methods by which a provider identifies a token without revealing it. */
const NAMES: ReadonlyMap<string, IsNamed> = new Map<string, IsNamed>([
  ['prefix', (token, name) => name.length >= MIN_PREFIX && token.startsWith(name)],
  ['hash_base64_sha512_sha512', (token, name) => sha512(sha512(token)).toString('base64') === name],
]);

interface SealedToken {
  readonly id: string;
  readonly userId: string;
  readonly sealed: string;
}

/** Removes the refresh token that an event names, by a scan (such events are rare); returns its owner. */
export async function removeNamedToken(
  db: TenantTransaction,
  secrets: SecretBox,
  issuer: string,
  { by, value }: NonNullable<ReportedEvent['token']>,
): Promise<string | undefined> {
  const isNamed = NAMES.get(by);
  if (!isNamed) return undefined;
  let after = '';
  for (;;) {
    const stored = await db.query<SealedToken>(
      `SELECT id, user_id AS "userId", refresh_token AS sealed FROM identities
        WHERE kind = 'google' AND issuer = $issuer AND refresh_token IS NOT NULL AND id > $after
        ORDER BY id LIMIT ${BATCH}`,
      { issuer, after },
    );
    const found = stored.find((each) => isNamed(openedToken(secrets, each) ?? '', value));
    if (found) {
      const { id, sealed, userId } = found;
      await db.query(
        'UPDATE identities SET refresh_token = NULL WHERE id = $id AND refresh_token = $sealed',
        { id, sealed },
      );
      return userId;
    }
    if (stored.length < BATCH) return undefined;
    after = stored.at(-1)?.id ?? '';
  }
}

/** Opens a stored token; undefined if its key is lost, since it cannot be used anyway. */
function openedToken(secrets: SecretBox, { id, sealed }: SealedToken): string | undefined {
  try {
    return secrets.open(sealed, refreshTokenContext(id));
  } catch (error) {
    if (error instanceof SecretUnreadableError) return undefined;
    throw error;
  }
}
