import { literal, Op } from 'sequelize';
import type { MailKind, MailTokenKind } from '../../../types/mail-kinds.js';
import { PLATFORM } from '../schema/policies.js';
import {
  index,
  key,
  nullable,
  table,
  text,
  timestamp,
  unique,
  withDefault,
} from '../schema/table.js';

/** Requested mails: those still to be sent, and all of the last two days, which count toward rate limits. */
export const mails = table(
  'mails',
  {
    id: key(text()),
    kind: text<MailKind>(),
    /** Recipient, if the mail is sent; for a reset, any address that was entered. */
    address: text(),
    /** User whose account the mail concerns; null if looked up when it is sent. */
    userId: nullable(text()),
    requestedAt: withDefault(timestamp(), literal('now()')),
    /** Time when the mail is next sent to its workflow. */
    dueAt: withDefault(timestamp(), literal('now()')),
    /** Time when the mail was sent or dropped. */
    settledAt: nullable(timestamp()),
  },
  [
    index('mails_waiting', ['due_at'], { settled_at: null }),
    index('mails_address', ['address', 'kind', 'requested_at']),
    index('mails_requested', ['requested_at']),
    index('mails_user', ['user_id'], { user_id: { [Op.ne]: null } }),
  ],
  PLATFORM,
);

/** Tokens of links in mails: the latest of each kind for an account. */
export const mailTokens = table(
  'mail_tokens',
  {
    /** SHA-256 of the token in hex. */
    id: key(text()),
    userId: text(),
    kind: text<MailTokenKind>(),
    /** Mailbox that receives the token, so its use proves access. */
    email: text(),
    expiresAt: timestamp(),
  },
  [
    unique('mail_tokens_of_user', ['user_id', 'kind']),
    index('mail_tokens_expires_at', ['expires_at']),
  ],
  PLATFORM,
);
