import { recordAudit, type RequestOrigin } from '../../platform/audit/audit.js';
import type { Requester } from '../../platform/audit/requester.js';
import type { Database, Statements } from '../../platform/database/database.js';
import { inviteCodeId, newInviteCode } from './invite-code.js';

export interface NewInvites {
  readonly count: number;
  /** Uses of each code. */
  readonly uses: number;
  readonly expiresInHours: number;
}

export interface MadeInvites {
  readonly codes: readonly string[];
  readonly expiresAt: Date;
}

export interface UsedInvite {
  readonly remaining: number;
  readonly expiresAt: Date;
}

const MAKE = `
  INSERT INTO invite_codes (id, remaining, expires_at)
    SELECT id, $uses, now() + make_interval(hours => $hours)
      FROM jsonb_array_elements_text($ids::jsonb) AS id
    RETURNING expires_at AS "expiresAt"`;

/** Takes one use; concurrent statements never take the same one. */
const TAKE = `
  UPDATE invite_codes SET remaining = remaining - 1
   WHERE id = $id AND remaining > 0 AND expires_at > now()
   RETURNING remaining, expires_at AS "expiresAt"`;

/** Creates codes, which cannot be read again. */
export function makeInvites(
  database: Database,
  { count, expiresInHours, uses }: NewInvites,
  { actor, requestId }: Pick<Requester, 'actor' | 'requestId'>,
): Promise<MadeInvites> {
  const codes = Array.from({ length: count }, newInviteCode);
  return database.asPlatform().transaction(async (db) => {
    const ids = JSON.stringify(codes.map(inviteCodeId));
    const [made] = await db.query<{ expiresAt: Date }>(MAKE, { ids, uses, hours: expiresInHours });
    if (!made) throw new TypeError('an insert must return its rows');
    const { expiresAt } = made;
    const detail = { count, uses, expiresAt };
    await recordAudit(db, {
      actor,
      action: 'invite.generate',
      subject: 'invite codes',
      requestId,
      detail,
    });
    return { codes, expiresAt };
  });
}

/**
 * Takes one use of a code, or returns undefined: it is unknown, used up or expired.
 * @param keep stores the answer in the same transaction, so that a repetition uses up nothing.
 */
export async function takeInvite(
  database: Database,
  code: string,
  { address, requestId }: RequestOrigin,
  keep: (db: Statements, used: UsedInvite) => Promise<void>,
): Promise<UsedInvite | undefined> {
  return database.asPlatform().transaction(async (db) => {
    const [used] = await db.query<UsedInvite>(TAKE, { id: inviteCodeId(code) });
    if (!used) return undefined;
    const { remaining } = used;
    await recordAudit(db, {
      ...{ actor: 'anonymous', action: 'invite.validate', subject: 'invite code', requestId },
      detail: { address, remaining },
    });
    await keep(db, used);
    return used;
  });
}
