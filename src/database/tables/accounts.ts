import type { Plan } from '../../accounts/plans.js';
import { ownedThrough } from '../policies.js';
import {
  boolean,
  created,
  integer,
  key,
  nullable,
  serial,
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
    name: text(),
    /** Null for who cannot sign in by password. */
    passwordHash: nullable(text()),
    /** As stored; who `ADMIN_EMAILS` names is an admin too, see `isAdmin` in `accounts/admin.ts`. */
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
    userId: text(),
    csrfToken: text(),
    createdAt: created(),
    expiresAt: timestamp(),
  },
  [
    { name: 'sessions_user_id', fields: ['user_id'] },
    { name: 'sessions_expires_at', fields: ['expires_at'] },
  ],
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
    createdAt: created(),
    /** To the minute; null until it is used. */
    lastUsed: nullable(timestamp()),
  },
  [
    { name: 'api_keys_lookup_hash_key', unique: true, fields: ['lookup_hash'] },
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

export const CreditEntry = table(
  'credit_entries',
  {
    id: key(serial()),
    userId: text(),
    amount: integer(),
    reason: text<'referral'>(),
    /** What the credit is for: with user and reason it is unique, so nothing is credited twice. */
    reference: text(),
    createdAt: created(),
  },
  [{ name: 'credit_entries_once', unique: true, fields: ['user_id', 'reason', 'reference'] }],
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
