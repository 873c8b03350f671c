import { randomUUID } from 'node:crypto';
import { requestNotice } from './account-notices.js';
import { identityOf } from '../../platform/audit/added-by.js';
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
import { sanitizeForJsonb } from '../../lib/well-formed.js';
import { addressGiver } from './additions.js';
import { isAdminUser } from './admin.js';
import { isEmail, normalizeEmail, WALLET_EMAIL_SUFFIX } from './email.js';
import { createAccount } from './new-account.js';
import { IdentityRefusedError, type Applicant, type ProvenIdentity } from './proven-identity.js';
import { MAX_NAME_LENGTH } from './register.js';
import { isResetMailBlocked } from './reset-mail-blocks.js';
import type { AccountSettings } from './settings.js';
import { requireOpenSession } from './sessions.js';
import type { IdentityProof } from './sign-in.js';
import { SIGN_IN_METHODS } from '../../types/sign-in-methods.js';

/** Maximum number of identities linked to an account: all of them fit into one list. */
export const MAX_IDENTITIES = 20;

/** Maximum number of unlinked identities that an account remembers. */
export const MAX_UNLINKED = 1_000;

/** Maximum attempts when a concurrent request creates or links the account of an address. */
const TRIES = 3;

const MAX_LABEL_LENGTH = 254;

/** Returns the encryption context of an identity's refresh token. */
export const refreshTokenContext = (identityId: string): string =>
  `identity:${identityId}:refresh-token`;

export type ListedIdentity = Pick<
  IdentityRow,
  'id' | 'kind' | 'label' | 'createdAt' | 'lastUsedAt'
>;

export type UnlinkedIdentity = Pick<IdentityRow, 'id' | 'kind' | 'refreshToken'>;

export interface IdentityStore {
  readonly database: Database;
  readonly secrets: SecretBox;
  readonly settings: Pick<AccountSettings, 'adminEmails' | 'firstIsAdmin'>;
}

/**
 * Proves that the caller is the user the identity is linked to. An unlinked identity is linked to the account
 * of its address if both sides have verified the address, or else to a new account. Idempotent.
 * @throws IdentityRefusedError for a disabled identity, or when its address is not sufficient proof.
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
  return signInWithIdentity(db, store, { identity: applicant, account, origin });
}

interface IdentitySignIn {
  readonly identity: ProvenIdentity & { readonly kind: IdentityProof['method'] };
  /** Returns the id of the account to link an unlinked identity to. @throws IdentityRefusedError */
  readonly account: () => Promise<string>;
  readonly origin: RequestOrigin;
}

/**
 * Proves that the caller is the user the identity is linked to, linking it first if necessary. Needs a
 * transaction of its own.
 * @throws IdentityRefusedError for an identity that is disabled, or was unlinked from an account.
 */
export async function signInWithIdentity(
  db: TenantTransaction,
  store: IdentityStore,
  { account, identity, origin }: IdentitySignIn,
): Promise<IdentityProof> {
  const { kind, issuer, subject } = identity;
  await lockIdentity(db, identity);
  const known = await db.Identity.findOne({
    attributes: ['id', 'userId', 'disabledAt', 'suspendedAt'],
    where: { kind, issuer, subject },
  });
  if (known?.disabledAt || known?.suspendedAt) throw new IdentityRefusedError('SignInDisabled');
  if (!known && (await wasUnlinked(db, identity))) throw new IdentityRefusedError('LinkRefused');
  const userId = known?.userId ?? (await account());
  const identityId = known?.id ?? (await addIdentity(db, store, { userId, identity, origin }));
  await db.Identity.update(
    { ...identityColumns(store, identityId, identity), lastUsedAt: new Date() },
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

/** Serializes first uses of an identity, so that the second finds the first's link. Locked before any row. */
const lockIdentity = (db: TenantTransaction, { issuer, kind, subject }: ProvenIdentity) =>
  db.lock(`identity ${kind} ${issuer} ${subject}`);

/** Reports whether an identity was unlinked from an account and not linked again since. */
async function wasUnlinked(
  db: TenantTransaction,
  { issuer, kind, subject }: ProvenIdentity,
): Promise<boolean> {
  return (await db.UnlinkedIdentity.count({ where: { kind, issuer, subject } })) > 0;
}

/** Returns the id of the account that a new identity is to be linked to. */
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
    const isTakenOver = await isResetMailBlocked(db, email);
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

/** Returns the address that may open or create an account. */
function addressOf({ email = '' }: Applicant): string | undefined {
  // Lower-casing maps some non-ASCII letters to ASCII ones, which would yield another user's address.
  if (!/^[\x21-\x7e]+$/.test(email)) return undefined;
  const normalized = normalizeEmail(email);
  // Only the wallet itself may use a wallet's address, whatever a provider claims.
  const isUsable = isEmail(normalized) && !normalized.endsWith(WALLET_EMAIL_SUFFIX);
  return isUsable ? normalized : undefined;
}

const canBeName = (name: string | undefined): name is string =>
  name !== undefined && name.trim() !== '' && name.length <= MAX_NAME_LENGTH && isVisible(name);

interface Addition {
  readonly userId: string;
  readonly identity: ProvenIdentity;
  readonly origin: RequestOrigin;
  /** The session that links the identity; undefined when the identity's own sign-in does. */
  readonly sessionId?: string;
}

async function addIdentity(
  db: TenantTransaction,
  store: Pick<IdentityStore, 'secrets'>,
  { identity, origin, sessionId, userId }: Addition,
): Promise<string> {
  const current = await db.Identity.count({ where: { userId } });
  if (current >= MAX_IDENTITIES) {
    const facts = { current, limit: MAX_IDENTITIES };
    throw new ConflictError(
      'Too many identities: unlink one first',
      'IDENTITY_LIMIT_REACHED',
      facts,
    );
  }
  const id = randomUUID();
  const { issuer, kind, subject } = identity;
  const said = identityColumns(store, id, identity);
  // Without a session the address has led to the account.
  const addedBy = await (sessionId === undefined
    ? addressGiver(db, userId)
    : identityOf(db, sessionId));
  await db.Identity.create({ id, userId, kind, issuer, subject, addedBy, ...said });
  await db.UnlinkedIdentity.destroy({ where: { kind, issuer, subject } });
  const { passwordHash } = await db.User.getByPk(userId);
  // The first way of a new account is the registration.
  if (current > 0 || passwordHash !== null) await requestNotice(db, userId, 'sign-in-added');
  const linked = { subject: id, detail: { kind } };
  await recordAudit(db, ofUser(userId, 'identity.link', origin, linked));
  return id;
}

/** Returns the values that can differ at each sign-in. Without a new refresh token the stored token stays. */
const identityColumns = (
  { secrets }: Pick<IdentityStore, 'secrets'>,
  id: string,
  { label, refreshToken }: ProvenIdentity,
) => ({
  label: sanitizeForJsonb(label.slice(0, MAX_LABEL_LENGTH)),
  ...(refreshToken !== undefined && {
    refreshToken: secrets.seal(refreshToken, refreshTokenContext(id)),
  }),
});

/**
 * Links an identity to the account of a session, regardless of the identity's address.
 * @throws ConflictError when the identity is already linked to an account or the account is at its limit,
 * UnauthorizedError when the session has ended.
 */
export async function linkIdentity(
  store: Pick<IdentityStore, 'database' | 'secrets'>,
  { userId, sessionId }: { readonly userId: string; readonly sessionId: string },
  identity: ProvenIdentity,
  origin: RequestOrigin,
): Promise<ListedIdentity> {
  // As the platform, because tenants have no access to the mails.
  const linked = store.database.asPlatform().transaction(async (db) => {
    await lockIdentity(db, identity);
    await requireOpenSession(db, { userId, sessionId });
    const id = await addIdentity(db, store, { userId, identity, origin, sessionId });
    return db.Identity.getByPk(id);
  });
  return linked.catch((error: unknown) => {
    if (violates(error, 'identities_subject_key')) {
      throw new ConflictError('This identity belongs to an account already', 'IDENTITY_TAKEN');
    }
    throw error;
  });
}

/** Lists the identities linked to a user's account, oldest first. */
export async function listIdentities(
  tenant: TenantDatabase,
  userId: string,
): Promise<ListedIdentity[]> {
  return tenant.transaction((db) =>
    db.Identity.findAll({
      attributes: ['id', 'kind', 'label', 'createdAt', 'lastUsedAt'] as const,
      where: { userId },
      order: ['createdAt', 'id'],
      limit: MAX_IDENTITIES,
    }),
  );
}

/**
 * Unlinks an identity and ends the other sessions of its kind; the caller revokes its token. The identity is
 * remembered, so that it cannot sign in by its address.
 * @throws NotFoundError also when the identity is another user's, ConflictError when it is the last way to
 * sign in, UnauthorizedError when the session has ended.
 */
export async function unlinkIdentity(
  database: Database,
  { userId, sessionId }: { readonly userId: string; readonly sessionId: string },
  id: string,
  origin: RequestOrigin,
): Promise<UnlinkedIdentity> {
  return database.asPlatform().transaction(async (db) => {
    // The lock serializes concurrent unlinks, so that the last way to sign in always remains.
    await requireOpenSession(db, { userId, sessionId });
    const [user] = await db.query<{ hasPassword: boolean }>(
      `SELECT password_hash IS NOT NULL AS "hasPassword" FROM users WHERE id = $userId`,
      { userId },
    );
    const identities = await db.Identity.findAll({ where: { userId } });
    const unlinked = identities.find((each) => each.id === id);
    if (!unlinked) throw new NotFoundError('Identity not found');
    const others = identities.filter((each) => each.id !== id && canSignIn(each));
    if (user?.hasPassword !== true && others.length === 0) {
      throw new ConflictError(
        'This is the last way to sign in: add another one first',
        'LAST_SIGN_IN_METHOD',
      );
    }
    const remembered = await db.UnlinkedIdentity.count({ where: { userId } });
    if (remembered >= MAX_UNLINKED) {
      const facts = { current: remembered, limit: MAX_UNLINKED };
      throw new ConflictError(
        'Too many unlinked identities: link one of them again first',
        'IDENTITY_LIMIT_REACHED',
        facts,
      );
    }
    await db.Identity.destroy({ where: { id, userId } });
    const { addedBy, createdAt, disabledAt, issuer, kind, label, refreshToken } = unlinked;
    const { reportedAt, subject } = unlinked;
    await db.UnlinkedIdentity.create({
      ...{ id, userId, kind, issuer, subject, label, addedBy, disabledAt, reportedAt },
      linkedAt: createdAt,
    });
    await requestNotice(db, userId, 'sign-in-removed');
    await db.query(
      'DELETE FROM sessions WHERE user_id = $userId AND method = $kind AND id <> $sessionId',
      { userId, kind, sessionId },
    );
    const lost = { subject: id, detail: { kind } };
    await recordAudit(db, ofUser(userId, 'identity.unlink', origin, lost));
    return { id, kind, refreshToken };
  });
}

export interface TokenRevoker {
  revoke(refreshToken: string): Promise<void>;
}

/**
 * Revokes the refresh token of an unlinked identity at its provider, if there is one. Idempotent.
 * @param provider undefined if none is configured; nothing is revoked then.
 * @throws when the provider refuses or does not respond; the token may be revoked nevertheless.
 */
export async function revokeRefreshToken(
  secrets: SecretBox,
  provider: TokenRevoker | undefined,
  { id, kind, refreshToken }: UnlinkedIdentity,
): Promise<void> {
  if (kind !== 'google' || refreshToken === null) return;
  await provider?.revoke(secrets.open(refreshToken, refreshTokenContext(id)));
}

const canSignIn = ({ disabledAt, kind, suspendedAt }: IdentityRow): boolean =>
  disabledAt === null && suspendedAt === null && SIGN_IN_METHODS.some((method) => method === kind);
