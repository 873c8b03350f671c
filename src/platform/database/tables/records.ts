import { literal } from 'sequelize';
import { ownedThrough, PLATFORM } from '../schema/policies.js';
import {
  bigint,
  created,
  index,
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

/** First responses to requests with an `Idempotency-Key`. */
export const idempotencyKeys = table(
  'idempotency_keys',
  {
    /** A user's id, or a name for a caller that is not a user. */
    caller: key(text()),
    route: key(text()),
    key: key(text()),
    requestHash: text(),
    /** `found`: another table has the response; `dropped`: the response is no longer kept. */
    state: text<'running' | 'done' | 'found' | 'dropped'>(),
    status: nullable(integer()),
    body: nullable(json<unknown>()),
    headers: nullable(json<Record<string, string>>()),
    /** Time when a `running` entry counts as abandoned. */
    lockedUntil: timestamp(),
    createdAt: created(),
    /** Size of the stored response. */
    bytes: withDefault(integer(), 0),
  },
  [index('idempotency_keys_created', ['created_at'])],
  PLATFORM,
);

/** Sums of the bytes of first responses, for each owner. Triggers keep them. */
export const keptAnswers = table(
  'kept_answers',
  {
    /** A user's id, or a name for an owner that is not a user. */
    owner: key(text()),
    bytes: bigint(),
  },
  [],
  PLATFORM,
);

/** The audit log. The serving role only adds rows; none are changed. */
export const auditLog = table(
  'audit_log',
  {
    id: key(serial()),
    at: withDefault(timestamp(), literal('now()')),
    actor: text(),
    /** Owner of the data concerned; null for the platform's own. */
    userId: nullable(text()),
    action: text(),
    subject: text(),
    detail: withDefault(json<Record<string, unknown>>(), {}),
    requestId: nullable(text()),
  },
  [
    index('audit_log_user', ['user_id', 'id']),
    index('audit_log_failed_sign_ins', ['subject'], { action: 'sign-in.failed' }),
  ],
  ownedThrough('user_id'),
);
