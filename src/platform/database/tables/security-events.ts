import { literal, Op } from 'sequelize';
import type { EventOutcome, ReportedEvent } from '../../../types/security-events.js';
import { PLATFORM } from '../schema/policies.js';
import {
  boolean,
  index,
  json,
  key,
  nullable,
  table,
  text,
  timestamp,
  unique,
  withDefault,
} from '../schema/table.js';

/** Security event tokens of the identity provider: a row for each, however often it is delivered. */
export const riscEvents = table(
  'risc_events',
  {
    /** The token's own id; in rows of earlier releases, the same as `id`. */
    jti: key(text()),
    /** SHA-256 of the `jti` in hex: the name of the row's workflow. */
    id: text(),
    /** Issuer of the events, equal to `issuer` of the identities concerned. */
    issuer: text(),
    /** Rule to find accounts: by the subject's id first, or by the email address only. */
    matching: text<'subject' | 'email'>(),
    /** Events of the token; emptied once applied, to erase the subjects. */
    events: json<readonly ReportedEvent[]>(),
    /** Time of the events; of two contradictory events the later one counts. */
    happenedAt: timestamp(),
    /** Time of issue according to the token; null in rows of earlier releases. */
    issuedAt: nullable(timestamp()),
    receivedAt: withDefault(timestamp(), literal('now()')),
    /** Time when the token is next sent to its workflow. */
    dueAt: withDefault(timestamp(), literal('now()')),
    appliedAt: nullable(timestamp()),
    /** Outcome of each event, in the token's order. */
    outcomes: nullable(json<readonly EventOutcome[]>()),
  },
  [
    unique('risc_events_id_key', ['id']),
    index('risc_events_waiting', ['due_at'], { applied_at: null }),
    index('risc_events_applied', ['applied_at'], { applied_at: { [Op.ne]: null } }),
  ],
  PLATFORM,
);

/** Mailboxes that another person may read, so no link that sets a password is sent to them. */
export const resetMailStops = table(
  'reset_mail_stops',
  {
    /** SHA-256 of the address in hex. */
    id: key(text()),
    /** False once the provider has reported that the owner controls the account again. */
    stopped: boolean(),
    /** Time of the latest event for the mailbox. */
    reportedAt: timestamp(),
  },
  [],
  PLATFORM,
);
