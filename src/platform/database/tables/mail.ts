import { literal, Op } from 'sequelize';
import type { MailKind, MailTokenKind } from '../../../types/mail-kinds.js';
import { PLATFORM } from '../schema/policies.js';
import { key, nullable, table, text, timestamp, withDefault } from '../schema/table.js';

/** Mails that were asked for: those still to be sent, and for two days all, by which they are counted. */
export const mails = table(
  'mails',
  {
    id: key(text()),
    kind: text<MailKind>(),
    /** Where it goes, if it does: for a reset, whatever somebody has typed. */
    address: text(),
    /** Whose account it is about; null where that is looked up when it is sent. */
    userId: nullable(text()),
    requestedAt: withDefault(timestamp(), literal('now()')),
    /** When it is handed to its workflow, or handed over again. */
    dueAt: withDefault(timestamp(), literal('now()')),
    /** When nothing was left to do about it. */
    settledAt: nullable(timestamp()),
  },
  [
    { name: 'mails_waiting', fields: ['due_at'], where: { settled_at: null } },
    { name: 'mails_address', fields: ['address', 'kind', 'requested_at'] },
    { name: 'mails_requested', fields: ['requested_at'] },
    { name: 'mails_user', fields: ['user_id'], where: { user_id: { [Op.ne]: null } } },
  ],
  PLATFORM,
);

/** Tokens of links in mails: of each kind the last one of an account. */
export const mailTokens = table(
  'mail_tokens',
  {
    /** SHA-256 of the token in hex. */
    id: key(text()),
    userId: text(),
    kind: text<MailTokenKind>(),
    /** The mailbox that whoever has the token reads. */
    email: text(),
    expiresAt: timestamp(),
  },
  [
    { name: 'mail_tokens_of_user', unique: true, fields: ['user_id', 'kind'] },
    { name: 'mail_tokens_expires_at', fields: ['expires_at'] },
  ],
  PLATFORM,
);
