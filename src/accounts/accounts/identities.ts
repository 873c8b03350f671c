import { randomUUID } from 'node:crypto';
import { ofUser, recordAudit, type RequestOrigin } from '../../platform/audit/audit.js';
import { violates } from '../../platform/database/constraints.js';
import type {
  Database,
  TenantDatabase,
  TenantTransaction,
} from '../../platform/database/database.js';
import type { IdentityRow } from '../../platform/database/models.js';
import { ConflictError, NotFoundError } from '../../lib/errors.js';
import type { SecretBox } from '../../platform/secrets/secret-box.js';
import { isVisible } from '../../lib/visible-text.js';
import { wellFormed } from '../../lib/well-formed.js';
import { isAdminUser } from './admin.js';
import { isEmail, normalizeEmail, WALLET_EMAIL_SUFFIX } from './email.js';
import { createAccount } from './new-account.js';
import { IdentityRefusedError, type Applicant, type ProvenIdentity } from './proven-identity.js';
import { MAX_NAME_LENGTH } from './register.js';
import { resetMailIsStopped } from './reset-mail-stops.js';
import type { AccountSettings } from './settings.js';
import { requireOpen } from './sessions.js';
import type { IdentityProof } from './sign-in.js';
import { SIGN_IN_METHODS } from '../../types/sign-in-methods.js';

/** Identities that one account can be linked to: all of them fit into one list. */
export const MAX_IDENTITIES = 20;

/** How often one begins anew when the account of an address was made, or linked, meanwhile. */
const TRIES = 3;

/** Characters of a label that are kept. */
const MAX_LABEL_LENGTH = 254;

/** What a refresh token is sealed for. */
export const refreshTokenContext = (identityId: string): string =>
  `identity:${identityId}:refresh-token`;

/** An identity as its owner sees it. */
export type ListedIdentity = Pick<
  IdentityRow,
  'id' | 'kind' | 'label' | 'createdAt' | 'lastUsedAt'
>;

/** An identity that is linked no more. */
export type UnlinkedIdentity = Pick<IdentityRow, 'id' | 'kind' | 'refreshToken'>;

/** What signing in by identities stands on. */
export interface IdentityStore {
  readonly database: Database;
  readonly secrets: SecretBox;
  readonly settings: Pick<AccountSettings, 'adminEmails' | 'firstIsAdmin'>;
}

/**
 * Proof that it is the user whom the identity is linked to. An identity that is linked to nobody gets
 * the account of its address, where both sides have proven it, or a new one. Done twice, also at
 * once, it makes one account.
 *
 * @throws IdentityRefusedError for one that is disabled, or whose address proves too little.
 */
export async function signInByIdentity(
  store: IdentityStore,
  applicant: Applicant,
  origin: RequestOrigin,
): Promise<IdentityProof> {
  for (let left = TRIES; ; left -= 1) {
    try {
      return await store.database
        .asPlatform()
        .transaction((db) => proofOf(db, store, applicant, origin));
    } catch (error) {
      const lost = ['users_email_key', 'identities_subject_key'].some((key) =>
        violates(error, key),
      );
      if (!lost || left === 1) throw error;
    }
  }
}

async function proofOf(
  db: TenantTransaction,
  store: IdentityStore,
  applicant: Applicant,
  origin: RequestOrigin,
): Promise<IdentityProof> {
  const account = () => accountFor(db, store, applicant, origin);
  return proveByIdentity(db, store, { identity: applicant, account, origin });
}

/** Somebody who signs in by an identity that was just proven. */
interface Comer {
  readonly identity: ProvenIdentity & { readonly kind: IdentityProof['method'] };
  /** The id of the account that it is linked to when it is linked to none. @throws IdentityRefusedError */
  readonly account: () => Promise<string>;
  readonly origin: RequestOrigin;
}

/**
 * Proof that it is the user whom the identity is linked to; it is linked where it is not. The transaction
 * is to be of this alone.
 *
 * @throws IdentityRefusedError for one that is disabled.
 */
export async function proveByIdentity(
  db: TenantTransaction,
  store: IdentityStore,
  { account, identity, origin }: Comer,
): Promise<IdentityProof> {
  const { kind, issuer, subject } = identity;
  await lockIdentity(db, identity);
  const known = await db.Identity.findOne({
    attributes: ['id', 'userId', 'disabledAt'],
    where: { kind, issuer, subject },
  });
  if (known?.disabledAt) throw new IdentityRefusedError('SignInDisabled');
  const userId = known?.userId ?? (await account());
  const identityId = known?.id ?? (await addIdentity(db, store, userId, identity, origin));
  await db.Identity.update(
    { ...whatIsSaid(store, identityId, identity), lastUsedAt: new Date() },
    { where: { id: identityId } },
  );
  const user = await db.User.getByPk(userId);
  const { email, id, name } = user;
  return {
    user: { id, name, email, isAdmin: isAdminUser(user, store.settings) },
    method: kind,
    identityId,
  };
}

/** One first use after the other: the second finds what the first has linked. Comes before all rows. */
const lockIdentity = (db: TenantTransaction, { issuer, kind, subject }: ProvenIdentity) =>
  db.lock(`identity ${kind} ${issuer} ${subject}`);

/** The id of the account that an identity is linked to which is linked to none. */
async function accountFor(
  db: TenantTransaction,
  { settings }: IdentityStore,
  applicant: Applicant,
  origin: RequestOrigin,
): Promise<string> {
  const email = addressOf(applicant);
  if (email === undefined) throw new IdentityRefusedError('NoEmail');
  const [account] = await db.query<{ id: string; verified: boolean }>(
    `SELECT id, email_verified_at IS NOT NULL AS verified FROM users WHERE email = $email FOR UPDATE`,
    { email },
  );
  const { emailVerified, issuer, kind, name } = applicant;
  if (account !== undefined) {
    const another = await db.Identity.count({ where: { userId: account.id, kind, issuer } });
    const isTakenOver = await resetMailIsStopped(db, email);
    if (!emailVerified || !account.verified || another > 0 || isTakenOver) {
      throw new IdentityRefusedError('LinkRefused');
    }
    return account.id;
  }
  if (!emailVerified) throw new IdentityRefusedError('NoEmail');
  const made = await createAccount(
    db,
    {
      email,
      name: canBeName(name) ? name.trim() : email,
      passwordHash: null,
      emailVerifiedAt: new Date(),
    },
    settings,
  );
  await recordAudit(db, ofUser(made.id, 'account.register', origin));
  return made.id;
}

/** The address that may open or make an account. */
function addressOf({ email = '' }: Applicant): string | undefined {
  // Lower case makes letters of other alphabets into ours: an address of them is another's.
  if (!/^[\x21-\x7e]+$/.test(email)) return undefined;
  const normalized = normalizeEmail(email);
  // A wallet's address is nobody's but the wallet's, whatever a provider says.
  const isOurs = isEmail(normalized) && !normalized.endsWith(WALLET_EMAIL_SUFFIX);
  return isOurs ? normalized : undefined;
}

const canBeName = (name: string | undefined): name is string =>
  name !== undefined && name.trim() !== '' && name.length <= MAX_NAME_LENGTH && isVisible(name);

async function addIdentity(
  db: TenantTransaction,
  store: Pick<IdentityStore, 'secrets'>,
  userId: string,
  identity: ProvenIdentity,
  { address, requestId }: RequestOrigin,
): Promise<string> {
  const current = await db.Identity.count({ where: { userId } });
  if (current >= MAX_IDENTITIES) {
    const facts = { current, limit: MAX_IDENTITIES };
    throw new ConflictError('Too many identities: unlink one first', facts);
  }
  const id = randomUUID();
  const { issuer, kind, subject } = identity;
  const said = whatIsSaid(store, id, identity);
  await db.Identity.create({ id, userId, kind, issuer, subject, ...said });
  const detail = { address, kind };
  const audit = { actor: userId, userId, action: 'identity.link', subject: id };
  await recordAudit(db, { ...audit, detail, requestId });
  return id;
}

/** What may be another each time. A refresh token that does not come anew stays. */
const whatIsSaid = (
  { secrets }: Pick<IdentityStore, 'secrets'>,
  id: string,
  { label, refreshToken }: ProvenIdentity,
) => ({
  label: wellFormed(label.slice(0, MAX_LABEL_LENGTH)),
  ...(refreshToken !== undefined && {
    refreshToken: secrets.seal(refreshToken, refreshTokenContext(id)),
  }),
});

/**
 * Links an identity to the account of a session, whatever its address.
 *
 * @throws ConflictError when it belongs to an account already, or the account has as many as there may
 *   be; UnauthorizedError when the session has ended meanwhile.
 */
export async function linkIdentity(
  store: Pick<IdentityStore, 'database' | 'secrets'>,
  { userId, sessionId }: { readonly userId: string; readonly sessionId: string },
  identity: ProvenIdentity,
  origin: RequestOrigin,
): Promise<ListedIdentity> {
  const linked = store.database.asUser(userId).transaction(async (db) => {
    await lockIdentity(db, identity);
    await requireOpen(db, { userId, sessionId });
    const id = await addIdentity(db, store, userId, identity, origin);
    return db.Identity.getByPk(id);
  });
  return linked.catch((error: unknown) => {
    if (violates(error, 'identities_subject_key')) {
      throw new ConflictError('This identity belongs to an account already');
    }
    throw error;
  });
}

/** What a user's account is linked to, oldest first. */
export async function listIdentities(
  tenant: TenantDatabase,
  userId: string,
): Promise<ListedIdentity[]> {
  return tenant.transaction((db) =>
    db.Identity.findAll({
      attributes: ['id', 'kind', 'label', 'createdAt', 'lastUsedAt'] as const,
      where: { userId },
      order: [
        ['createdAt', 'ASC'],
        ['id', 'ASC'],
      ],
      limit: MAX_IDENTITIES,
    }),
  );
}

/**
 * Unlinks an identity: nobody signs in by it any more, and whoever has goes. Sessions tell the kind alone,
 * so all of that kind end, but for the one that asks.
 *
 * @returns what is left to be revoked at the provider.
 * @throws NotFoundError also when it is another user's, ConflictError when it is the last way in,
 *   UnauthorizedError when the session has ended meanwhile.
 */
export async function unlinkIdentity(
  tenant: TenantDatabase,
  { userId, sessionId }: { readonly userId: string; readonly sessionId: string },
  id: string,
  { address, requestId }: RequestOrigin,
): Promise<UnlinkedIdentity> {
  return tenant.transaction(async (db) => {
    // Of two at once, the second sees what the first has left.
    await requireOpen(db, { userId, sessionId });
    const [user] = await db.query<{ hasPassword: boolean }>(
      `SELECT password_hash IS NOT NULL AS "hasPassword" FROM users WHERE id = $userId`,
      { userId },
    );
    const identities = await db.Identity.findAll({ where: { userId } });
    const unlinked = identities.find((each) => each.id === id);
    if (!unlinked) throw new NotFoundError('Identity not found');
    const others = identities.filter((each) => each.id !== id && opens(each));
    if (user?.hasPassword !== true && others.length === 0) {
      throw new ConflictError('This is the last way to sign in');
    }
    await db.Identity.destroy({ where: { id, userId } });
    const { kind, refreshToken } = unlinked;
    await db.query(
      'DELETE FROM sessions WHERE user_id = $userId AND method = $kind AND id <> $sessionId',
      { userId, kind, sessionId },
    );
    const audit = { actor: userId, userId, action: 'identity.unlink', subject: id };
    await recordAudit(db, { ...audit, detail: { address, kind }, requestId });
    return { id, kind, refreshToken };
  });
}

/** A provider that can be told to end what a refresh token is good for. */
export interface TokenRevoker {
  revoke(refreshToken: string): Promise<void>;
}

/**
 * Revokes what an identity leaves at its provider, if anything. Done twice, it is no error.
 *
 * @param provider undefined where none is configured any more: nothing is done then.
 * @throws when the provider refuses or does not answer: it may have been done all the same.
 */
export async function revokeRefreshToken(
  secrets: SecretBox,
  provider: TokenRevoker | undefined,
  { id, kind, refreshToken }: UnlinkedIdentity,
): Promise<void> {
  if (kind !== 'google' || refreshToken === null) return;
  await provider?.revoke(secrets.open(refreshToken, refreshTokenContext(id)));
}

/** Whether one can sign in by it. */
const opens = ({ disabledAt, kind }: IdentityRow): boolean =>
  disabledAt === null && SIGN_IN_METHODS.some((method) => method === kind);
