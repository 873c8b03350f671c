import { literal, Op } from 'sequelize';
import { DEFAULT_KEY_SCOPES, type KeyScope } from '../../../types/key-scopes.js';
import type { Plan, StoragePlan, SubscriptionKind } from '../../../types/plans.js';
import type { IdentityKind, SignInMethod } from '../../../types/sign-in-methods.js';
import { ownedThrough } from '../schema/policies.js';
import {
  boolean,
  created,
  index,
  key,
  nullable,
  table,
  text,
  texts,
  timestamp,
  unique,
  updated,
  withDefault,
} from '../schema/table.js';

export const User = table(
  'users',
  {
    id: key(text()),
    /** Lower case. */
    email: text(),
    /** Time when the user last proved access to the mailbox; null if unproven. */
    emailVerifiedAt: nullable(timestamp()),
    /** New address that replaces `email` once proven. Lower case. */
    pendingEmail: nullable(text()),
    name: text(),
    /** Null for a user without a password. */
    passwordHash: nullable(text()),
    /** Identity whose session set the password; null for any other session. */
    passwordAddedBy: nullable(text()),
    /** Time when a session set the password; null for a password of the registration or of a reset. */
    passwordAddedAt: nullable(timestamp()),
    /** The password while an identity that led to it is reported as hijacked. */
    suspendedPasswordHash: nullable(text()),
    /** The stored flag only; see `isAdmin` in `accounts/admin.ts`. */
    isAdmin: withDefault(boolean(), false),
    /** Upper case. */
    referralCode: nullable(text()),
    createdAt: created(),
    updatedAt: updated(),
  },
  [unique('users_email_key', ['email']), unique('users_referral_code_key', ['referral_code'])],
  ownedThrough('id'),
);

export const Session = table(
  'sessions',
  {
    /** SHA-256 of the cookie's token in hex, so that the table's content cannot open a session. */
    tokenHash: key(text()),
    /** Id by which the user selects the session. */
    id: withDefault(text(), literal('gen_random_uuid()::text')),
    userId: text(),
    method: withDefault(text<SignInMethod>(), 'password'),
    /** The identity that opened the session, or that last set the password which opened it. */
    identityId: nullable(text()),
    /** Always null: the CSRF token is derived from the session token, which is not stored. */
    csrfToken: nullable(text()),
    /** Time of the sign-in, which decides whether a session is fresh. */
    createdAt: created(),
    /** Time of last use, to the minute. */
    lastSeenAt: withDefault(timestamp(), literal('now()')),
    expiresAt: timestamp(),
    userAgent: nullable(text()),
    address: nullable(text()),
  },
  [
    unique('sessions_id_key', ['id']),
    index('sessions_user_id', ['user_id']),
    index('sessions_expires_at', ['expires_at']),
  ],
  ownedThrough('user_id'),
);

/** External identities of users, most of which permit sign-in. */
export const Identity = table(
  'identities',
  {
    id: key(text()),
    userId: text(),
    kind: text<IdentityKind>(),
    /** Issuer of the identity: a provider's address, or `eip155`. */
    issuer: text(),
    /** Id that the issuer never reassigns, so never an address or login name. */
    subject: text(),
    /** Name of the identity for users: an email address or login name. */
    label: text(),
    /** Sealed token. */
    refreshToken: nullable(text()),
    /** Null while the identity permits sign-in. */
    disabledAt: nullable(timestamp()),
    /** Time of the latest security event that the provider reported. */
    reportedAt: nullable(timestamp()),
    /** `identityId` of the session that linked the identity. */
    addedBy: nullable(text()),
    /** Set while an identity that led to the link is reported as hijacked. */
    suspendedAt: nullable(timestamp()),
    createdAt: created(),
    lastUsedAt: nullable(timestamp()),
  },
  [
    unique('identities_subject_key', ['kind', 'issuer', 'subject']),
    index('identities_user_id', ['user_id']),
  ],
  ownedThrough('user_id'),
);

/** Identities that were unlinked: they cannot sign in until a session links them again. */
export const UnlinkedIdentity = table(
  'unlinked_identities',
  {
    /** Id of the former identity. */
    id: key(text()),
    userId: text(),
    kind: text<IdentityKind>(),
    issuer: text(),
    subject: text(),
    label: text(),
    addedBy: nullable(text()),
    disabledAt: nullable(timestamp()),
    reportedAt: nullable(timestamp()),
    linkedAt: timestamp(),
    unlinkedAt: withDefault(timestamp(), literal('now()')),
  },
  [
    unique('unlinked_identities_subject_key', ['kind', 'issuer', 'subject']),
    index('unlinked_identities_user_id', ['user_id']),
  ],
  ownedThrough('user_id'),
);

/** Hosts from which users have signed in, which a stranger's failed sign-ins do not block. */
export const SignInHost = table(
  'sign_in_hosts',
  {
    userId: key(text()),
    /** An IPv4 address, or the /64 network of an IPv6 address. */
    host: key(text()),
    lastAt: timestamp(),
  },
  [index('sign_in_hosts_last_at', ['last_at'])],
  ownedThrough('user_id'),
);

/** Keys by which users' programs call the API. The key itself is not stored. */
export const ApiKey = table(
  'api_keys',
  {
    id: key(text()),
    userId: text(),
    name: text(),
    /** First and last letters of the key. */
    keyPreview: text(),
    /** Bcrypt hash of the key. */
    keyHash: text(),
    /** SHA-256 of the key in hex, for lookups. */
    lookupHash: text(),
    /** First ten characters of the key; null for an older key until its next use. */
    keyPrefix: nullable(text()),
    scopes: withDefault(texts<KeyScope>(), literal(`'{${DEFAULT_KEY_SCOPES.join(',')}}'::text[]`)),
    /** `identityId` of the session that made the key. */
    addedBy: nullable(text()),
    /** Set while an identity that led to the key is reported as hijacked. */
    suspendedAt: nullable(timestamp()),
    createdAt: created(),
    /** Time of last use, to the minute; null if never used. */
    lastUsed: nullable(timestamp()),
  },
  [
    unique('api_keys_lookup_hash_key', ['lookup_hash']),
    index('api_keys_key_prefix', ['key_prefix']),
    index('api_keys_user_time', ['user_id', 'created_at']),
  ],
  ownedThrough('user_id'),
);

/** Subscriptions of the payment processor, and the plans that the operator grants, one for each user. */
export const Subscription = table(
  'subscriptions',
  {
    id: withDefault(key(text()), literal('gen_random_uuid()::text')),
    userId: text(),
    kind: withDefault(text<SubscriptionKind>(), 'plan'),
    plan: text<Plan | StoragePlan>(),
    status: text<'active' | 'past_due' | 'cancelled'>(),
    /** `operator` or `processor`. */
    source: text(),
    /** The processor's id of the subscription; null for a grant. */
    processorId: nullable(text()),
    periodStart: timestamp(),
    /** Null for a plan without an end. */
    periodEnd: nullable(timestamp()),
    /** Time until which the plan holds, if not until `periodEnd`. */
    holdsUntil: nullable(timestamp()),
    /** The processor's id of the customer who pays; null for a grant. */
    customerId: nullable(text()),
    /** Time at which the state was last read from the processor. */
    readAt: nullable(timestamp()),
    /** Time of the final end; null while the processor may still request a payment. */
    endedAt: nullable(timestamp()),
    /** Set while the owner has been sent a mail about the end. */
    endMailedAt: nullable(timestamp()),
    createdAt: created(),
    updatedAt: updated(),
  },
  [
    unique('subscriptions_grant', ['user_id'], { processor_id: null }),
    unique('subscriptions_processor_id', ['processor_id']),
    index('subscriptions_user_id', ['user_id']),
    index('subscriptions_read', ['read_at'], {
      source: 'processor',
      status: { [Op.ne]: 'cancelled' },
    }),
  ],
  ownedThrough('user_id'),
);

/** Users' own keys of AI providers. */
export const ProviderKey = table(
  'provider_keys',
  {
    userId: key(text()),
    provider: key(text()),
    sealedKey: text(),
    /** `identityId` of the session that stored the key. */
    addedBy: nullable(text()),
    /** Set while an identity that led to the key is reported as hijacked. */
    suspendedAt: nullable(timestamp()),
    createdAt: created(),
  },
  [],
  ownedThrough('user_id'),
);

export const Installation = table(
  'installations',
  {
    /** Claimed and not verified: may belong to no account. */
    userId: key(text()),
    mode: text<'home' | 'link' | 'cloud'>(),
    registeredAt: timestamp(),
    lastSeen: timestamp(),
    status: text<'active' | 'inactive'>(),
    /** Sealed; null if the installation has none. */
    sealedGatewayToken: nullable(text()),
  },
  [index('installations_seen', ['last_seen', 'user_id'])],
  ownedThrough('user_id'),
);

/** Accounts that their owners delete: sign-ins and new work are refused. */
export const AccountDeletion = table(
  'account_deletions',
  {
    userId: key(text()),
    requestId: text(),
    requestedAt: withDefault(timestamp(), literal('now()')),
    /** Time when a worker next checks that the deletion is in progress. */
    dueAt: withDefault(timestamp(), literal('now()')),
  },
  [],
  ownedThrough('user_id'),
);
