import { literal, Op } from 'sequelize';
import type { EventOutcome } from '../../security-events/outcomes.js';
import type { ToldEvent } from '../../security-events/event-tokens.js';
import { PLATFORM } from '../policies.js';
import { boolean, json, key, nullable, table, text, timestamp, withDefault } from '../table.js';

/** What the identity provider has told of accounts: a row for each token, whoever sends it how often. */
export const riscEvents = table(
  'risc_events',
  {
    /** SHA-256 of the token's `jti` in hex. */
    id: key(text()),
    /** Whose events they are: `issuer` of the identities that they are about. */
    issuer: text(),
    /** Whether accounts are found by the subject's id first, or by its address alone. */
    matching: text<'subject' | 'email'>(),
    /** Empty once they are applied: who they were about is forgotten. */
    events: json<readonly ToldEvent[]>(),
    /** By which of two that contradict each other the later one counts. */
    happenedAt: timestamp(),
    receivedAt: withDefault(timestamp(), literal('now()')),
    /** When it is handed to its workflow, once more if it has been already. */
    dueAt: withDefault(timestamp(), literal('now()')),
    appliedAt: nullable(timestamp()),
    /** What became of each, in the order of the token. */
    outcomes: nullable(json<readonly EventOutcome[]>()),
  },
  [
    { name: 'risc_events_waiting', fields: ['due_at'], where: { applied_at: null } },
    {
      name: 'risc_events_applied',
      fields: ['applied_at'],
      where: { applied_at: { [Op.ne]: null } },
    },
  ],
  PLATFORM,
);

/** Mailboxes that somebody else may read: no link that sets a password goes there. */
export const resetMailStops = table(
  'reset_mail_stops',
  {
    /** SHA-256 of the address in hex. */
    id: key(text()),
    /** False once the provider has said that the account is its owner's again. */
    stopped: boolean(),
    /** When what was said of it last happened. */
    toldAt: timestamp(),
  },
  [],
  PLATFORM,
);
