import { literal } from 'sequelize';
import { ownedThrough, PLATFORM } from '../schema/policies.js';
import {
  created,
  integer,
  json,
  key,
  nullable,
  serial,
  table,
  text,
  timestamp,
  withDefault,
} from '../schema/table.js';

/** The first answers to requests that carried an `Idempotency-Key`. */
export const idempotencyKeys = table(
  'idempotency_keys',
  {
    /** Who called: a user's id, or a name for a caller that is no user. */
    caller: key(text()),
    route: key(text()),
    key: key(text()),
    requestHash: text(),
    state: text<'running' | 'done'>(),
    status: nullable(integer()),
    /** Any JSON: the answer's body. */
    body: nullable(json<unknown>()),
    headers: nullable(json<Record<string, string>>()),
    /** Until when a `running` entry is believed to be at work. */
    lockedUntil: timestamp(),
    createdAt: created(),
  },
  [{ name: 'idempotency_keys_created', fields: ['created_at'] }],
  PLATFORM,
);

/** The audit log. The serving role adds lines; nobody changes them. */
export const auditLog = table(
  'audit_log',
  {
    id: key(serial()),
    at: withDefault(timestamp(), literal('now()')),
    actor: text(),
    /** Whose data it is about; null for the platform's own. */
    userId: nullable(text()),
    action: text(),
    subject: text(),
    detail: withDefault(json<Record<string, unknown>>(), {}),
    requestId: nullable(text()),
  },
  [
    { name: 'audit_log_user', fields: ['user_id', 'id'] },
    {
      name: 'audit_log_failed_sign_ins',
      fields: ['subject'],
      where: { action: 'sign-in.failed' },
    },
  ],
  ownedThrough('user_id'),
);
