import { suspectAddress, suspendAdditions } from '../accounts/additions.js';
import { endApiKeys } from '../accounts/api-keys.js';
import { setResetMailBlocks } from '../accounts/reset-mail-blocks.js';
import { recordAudit } from '../../platform/audit/audit.js';
import type { Database, TenantTransaction } from '../../platform/database/database.js';
import type { RiscEventRow } from '../../platform/database/models.js';
import { selectFrom } from '../../platform/database/schema/table.js';
import { riscEvents } from '../../platform/database/tables/security-events.js';
import type { SecretBox } from '../../platform/secrets/secret-box.js';
import { closeSessionsOf } from '../../money/sessions/session-settlements.js';
import { ownWallets } from '../../money/wallets/own-wallets.js';
import { EVENT_TYPES, TOKEN_REVOKED } from './event-types.js';
import { findSubject, type EventSubject } from './event-subjects.js';
import type { EventEffect, EventOutcome, ReportedEvent } from '../../types/security-events.js';
import { removeNamedToken } from './revoked-tokens.js';

export class EventEffects {
  readonly #database: Database;
  readonly #secrets: SecretBox;

  constructor(database: Database, secrets: SecretBox) {
    this.#database = database;
    this.#secrets = secrets;
  }

  /** Applies a token's events in one transaction, idempotently, and erases their subjects. */
  async apply(id: string): Promise<readonly EventOutcome[]> {
    return this.#database.asPlatform().transaction(async (db) => {
      const [row] = await db.query<RiscEventRow>(
        `${selectFrom(riscEvents)} WHERE id = $id FOR UPDATE`,
        { id },
      );
      if (!row || row.appliedAt !== null) return row?.outcomes ?? [];
      const outcomes: EventOutcome[] = [];
      for (const reported of row.events) {
        outcomes.push({ type: reported.type, effect: await this.#effectOf(db, row, reported) });
      }
      await db.query(
        `UPDATE risc_events SET applied_at = now(), events = '[]', outcomes = $outcomes
          WHERE id = $id`,
        { id, outcomes: JSON.stringify(outcomes) },
      );
      return outcomes;
    });
  }

  async #effectOf(
    db: TenantTransaction,
    row: RiscEventRow,
    reported: ReportedEvent,
  ): Promise<EventEffect> {
    if (reported.type === EVENT_TYPES.verification) return 'acknowledged';
    if (reported.type === TOKEN_REVOKED) {
      if (!reported.token) return 'ignored';
      const owner = await removeNamedToken(db, this.#secrets, row.issuer, reported.token);
      if (owner === undefined) return 'unknown';
      await note(db, { row, reported, userId: owner, effect: 'token-removed' });
      return 'token-removed';
    }
    const apply = EFFECTS.get(reported.type);
    if (!apply) return 'ignored';
    const subject = await findSubject(db, row, reported);
    if (!subject) return 'unknown';
    const effect = await apply({ db, subject, reported, at: row.happenedAt });
    await note(db, { row, reported, userId: subject.userId, effect });
    return effect;
  }
}

async function note(
  db: TenantTransaction,
  noted: {
    readonly row: RiscEventRow;
    readonly reported: ReportedEvent;
    readonly userId: string;
    readonly effect: EventEffect;
  },
): Promise<void> {
  const { effect, row, reported, userId } = noted;
  await recordAudit(db, {
    actor: 'identity-provider',
    userId,
    action: `security-event.${reported.type.split('/').at(-1) ?? ''}`,
    subject: userId,
    detail: { event: row.id, effect },
  });
}

interface Effect {
  readonly db: TenantTransaction;
  readonly subject: EventSubject;
  readonly reported: ReportedEvent;
  readonly at: Date;
}

type Apply = (effect: Effect) => Promise<EventEffect>;

const EFFECTS: ReadonlyMap<string, Apply> = new Map<string, Apply>([
  [
    EVENT_TYPES['account-disabled'],
    async (effect) => {
      await endSessions(effect);
      if (effect.reported.reason !== 'hijacking') return 'signed-out';
      const done = await setSignInBlocked(effect, true);
      // Suspended keys become valid again with the account.
      await endApiKeys(effect.db, effect.subject.userId, { suspendedToo: false });
      await closePaymentSessions(effect);
      return done;
    },
  ],
  [EVENT_TYPES['account-enabled'], (effect) => setSignInBlocked(effect, false)],
  [
    EVENT_TYPES['sessions-revoked'],
    async (effect) => {
      await endSessions(effect);
      return 'signed-out';
    },
  ],
  [
    EVENT_TYPES['tokens-revoked'],
    async (effect) => {
      const { identityIds } = effect.subject;
      await effect.db.query(
        'UPDATE identities SET refresh_token = NULL WHERE id = ANY ($identityIds)',
        { identityIds },
      );
      await endSessions(effect);
      return 'token-removed';
    },
  ],
  [EVENT_TYPES['account-credential-change-required'], () => Promise.resolve('logged')],
]);

async function endSessions({ db, subject: { userId } }: Effect): Promise<void> {
  await db.query('DELETE FROM sessions WHERE user_id = $userId', { userId });
}

/** Closes the payment sessions whose ids, which pay, the account's sessions have shown. */
async function closePaymentSessions({ db, subject: { userId } }: Effect): Promise<void> {
  await closeSessionsOf(db, userId, await ownWallets(db, userId));
}

/**
 * Blocks or unblocks sign-in by the identities and what they have added, and reset mails to their addresses and to
 * the one that they have given to the account.
 */
async function setSignInBlocked(
  { db, subject, at }: Effect,
  isShutOut: boolean,
): Promise<'disabled' | 'enabled' | 'superseded'> {
  const { emails, identityIds, userId } = subject;
  const before = await suspectAddress(db, userId);
  let changed = 0;
  for (const table of ['identities', 'unlinked_identities']) {
    const rows = await db.query(
      `UPDATE ${table} SET reported_at = $at,
              disabled_at = CASE WHEN $isShutOut THEN coalesce(disabled_at, now()) END
        WHERE id = ANY ($identityIds) AND (reported_at IS NULL OR reported_at <= $at) RETURNING id`,
      { identityIds, at, isShutOut },
    );
    changed += rows.length;
  }
  await suspendAdditions(db, userId);
  // Before, for an account that is enabled again: its identities are suspects no longer.
  const changedTo = before ?? (await suspectAddress(db, userId));
  const mailboxes = changedTo === undefined ? emails : [...emails, changedTo];
  await setResetMailBlocks(db, mailboxes, { stopped: isShutOut, at });
  if (changed < identityIds.length) return 'superseded';
  return isShutOut ? 'disabled' : 'enabled';
}
