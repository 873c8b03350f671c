import { literal } from 'sequelize';
import type { Plan } from '../../accounts/plans.js';
import type { IdentityKind, SignInMethod } from '../../accounts/ways-in.js';
import { ownedThrough } from '../policies.js';
import {
  boolean,
  created,
  key,
  nullable,
  table,
  text,
  timestamp,
  updated,
  withDefault,
} from '../table.js';

export const User = table(
  'users',
  {
    id: key(text()),
    /** Always lower case. */
    email: text(),
    /** When it was last proven that the mailbox is theirs; null while it is not. */
    emailVerifiedAt: nullable(timestamp()),
    /** What is to become their address once they prove it. Always lower case. */
    pendingEmail: nullable(text()),
    name: text(),
    /** Null for who cannot sign in by password. */
    passwordHash: nullable(text()),
    /** As stored: see `isAdmin` in `accounts/admin.ts`. */
    isAdmin: withDefault(boolean(), false),
    /** Always upper case. */
    referralCode: nullable(text()),
    createdAt: created(),
    updatedAt: updated(),
  },
  [
    { name: 'users_email_key', unique: true, fields: ['email'] },
    { name: 'users_referral_code_key', unique: true, fields: ['referral_code'] },
  ],
  ownedThrough('id'),
);

export const Session = table(
  'sessions',
  {
    /** SHA-256 of the cookie's token in hex: a read of this table signs nobody in. */
    tokenHash: key(text()),
    /** By which its owner names it. */
    id: withDefault(text(), literal('gen_random_uuid()::text')),
    userId: text(),
    method: withDefault(text<SignInMethod>(), 'password'),
    /** Null: it follows from the session's own token, which is not stored. */
    csrfToken: nullable(text()),
    /** When they signed in, by which a session is fresh. */
    createdAt: created(),
    /** To the minute. */
    lastSeenAt: withDefault(timestamp(), literal('now()')),
    expiresAt: timestamp(),
    userAgent: nullable(text()),
    address: nullable(text()),
  },
  [
    { name: 'sessions_id_key', unique: true, fields: ['id'] },
    { name: 'sessions_user_id', fields: ['user_id'] },
    { name: 'sessions_expires_at', fields: ['expires_at'] },
  ],
  ownedThrough('user_id'),
);

/** What others vouch that a user is; by most of them one can sign in. */
export const Identity = table(
  'identities',
  {
    id: key(text()),
    userId: text(),
    kind: text<IdentityKind>(),
    /** Who vouches: the address of a provider, or `eip155`. */
    issuer: text(),
    /** What the issuer never gives to another: never an address or a login name. */
    subject: text(),
    /** What people know it by: an email, a login name. */
    label: text(),
    /** Sealed. */
    refreshToken: nullable(text()),
    /** Null while one can sign in by it. */
    disabledAt: nullable(timestamp()),
    /** When that happened which the provider's security events have told of it last. */
    toldAt: nullable(timestamp()),
    createdAt: created(),
    lastUsedAt: nullable(timestamp()),
  },
  [
    { name: 'identities_subject_key', unique: true, fields: ['kind', 'issuer', 'subject'] },
    { name: 'identities_user_id', fields: ['user_id'] },
  ],
  ownedThrough('user_id'),
);

/** From where users have signed in: no stranger's guesses keep them out there. */
export const SignInHost = table(
  'sign_in_hosts',
  {
    userId: key(text()),
    /** An IPv4 address, or the /64 of an IPv6 address. */
    host: key(text()),
    lastAt: timestamp(),
  },
  [{ name: 'sign_in_hosts_last_at', fields: ['last_at'] }],
  ownedThrough('user_id'),
);

/** The keys by which users' programs call the backend. A key itself is stored nowhere. */
export const ApiKey = table(
  'api_keys',
  {
    id: key(text()),
    userId: text(),
    name: text(),
    /** The key's first and last letters. */
    keyPreview: text(),
    /** By bcrypt. */
    keyHash: text(),
    /** SHA-256 of the key in hex, by which it is found. */
    lookupHash: text(),
    /** Its first ten characters; null until a key from before there was this is used. */
    keyPrefix: nullable(text()),
    createdAt: created(),
    /** To the minute; null until it is used. */
    lastUsed: nullable(timestamp()),
  },
  [
    { name: 'api_keys_lookup_hash_key', unique: true, fields: ['lookup_hash'] },
    { name: 'api_keys_key_prefix', fields: ['key_prefix'] },
    { name: 'api_keys_user_time', fields: ['user_id', 'created_at'] },
  ],
  ownedThrough('user_id'),
);

export const Subscription = table(
  'subscriptions',
  {
    userId: key(text()),
    plan: text<Plan>(),
    status: text<'active' | 'cancelled'>(),
    /** Who or what granted the plan. */
    source: text(),
    periodStart: timestamp(),
    /** Null: until it is changed. */
    periodEnd: nullable(timestamp()),
    createdAt: created(),
    updatedAt: updated(),
  },
  [],
  ownedThrough('user_id'),
);

export const Installation = table(
  'installations',
  {
    userId: key(text()),
    mode: text<'home' | 'link' | 'cloud'>(),
    registeredAt: timestamp(),
    lastSeen: timestamp(),
    status: text<'active' | 'inactive'>(),
  },
  [],
  ownedThrough('user_id'),
);

/** Accounts that their owners delete: nobody signs in to one, and nothing begins for it. */
export const AccountDeletion = table(
  'account_deletions',
  {
    userId: key(text()),
    /** The request that asked for it. */
    requestId: text(),
    requestedAt: withDefault(timestamp(), literal('now()')),
    /** When a worker makes sure that somebody is about it. */
    dueAt: withDefault(timestamp(), literal('now()')),
  },
  [],
  ownedThrough('user_id'),
);
