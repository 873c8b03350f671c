import { normalizeEmail } from '../accounts/email.js';
import { setResetMailStops } from '../accounts/reset-mail-stops.js';
import { recordAudit } from '../audit/audit.js';
import type { Database, TenantTransaction } from '../database/database.js';
import type { RiscEventRow } from '../database/models.js';
import { selectFrom } from '../database/table.js';
import { RiscEvent } from '../database/tables/security-events.js';
import type { ToldEvent } from './event-tokens.js';
import { EVENT_TYPES } from './event-types.js';
import { findSubject, type EventSubject } from './event-subjects.js';
import type { EventEffect, EventOutcome } from './outcomes.js';

/** Does what events ask for. */
export class EventEffects {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /**
   * Applies what one token told, all of it or nothing, and forgets of whom. Again it changes nothing.
   *
   * @returns what became of each event, in the order of the token.
   */
  async apply(id: string): Promise<readonly EventOutcome[]> {
    return this.#database.asPlatform().transaction(async (db) => {
      const [row] = await db.query<RiscEventRow>(
        `${selectFrom(RiscEvent)} WHERE id = $id FOR UPDATE`,
        { id },
      );
      if (!row || row.appliedAt !== null) return row?.outcomes ?? [];
      const outcomes: EventOutcome[] = [];
      for (const told of row.events) {
        outcomes.push({ type: told.type, effect: await this.#effectOf(db, row, told) });
      }
      await db.query(
        `UPDATE risc_events SET applied_at = now(), events = '[]', outcomes = $outcomes
          WHERE id = $id`,
        { id, outcomes: JSON.stringify(outcomes) },
      );
      return outcomes;
    });
  }

  async #effectOf(db: TenantTransaction, row: RiscEventRow, told: ToldEvent): Promise<EventEffect> {
    if (told.type === EVENT_TYPES.verification) return 'acknowledged';
    const effect = EFFECTS[told.type];
    if (!effect) return 'ignored';
    const subject = await findSubject(db, row, told);
    if (!subject) return 'unknown';
    const done = await effect({ db, subject, told, at: row.happenedAt });
    const { userId } = subject;
    await recordAudit(db, {
      actor: 'identity-provider',
      userId,
      action: `security-event.${told.type.split('/').at(-1) ?? ''}`,
      subject: userId,
      detail: { event: row.id, effect: done },
    });
    return done;
  }
}

interface Effect {
  readonly db: TenantTransaction;
  readonly subject: EventSubject;
  readonly told: ToldEvent;
  /** When it happened. */
  readonly at: Date;
}

const EFFECTS: Readonly<Record<string, (effect: Effect) => Promise<EventEffect>>> = {
  [EVENT_TYPES['account-disabled']]: async (effect) => {
    const done = effect.told.reason === 'hijacking' ? await shutOut(effect, true) : 'signed-out';
    await endSessions(effect);
    return done;
  },
  [EVENT_TYPES['account-enabled']]: (effect) => shutOut(effect, false),
  [EVENT_TYPES['sessions-revoked']]: async (effect) => {
    await endSessions(effect);
    return 'signed-out';
  },
  [EVENT_TYPES['tokens-revoked']]: async (effect) => {
    const { db, subject } = effect;
    await db.query('UPDATE identities SET refresh_token = NULL WHERE id = ANY ($identityIds)', {
      identityIds: subject.identityIds,
    });
    await endSessions(effect);
    return 'token-removed';
  },
  [EVENT_TYPES['account-credential-change-required']]: () => Promise.resolve('logged'),
};

async function endSessions({ db, subject: { userId } }: Effect): Promise<void> {
  await db.query('DELETE FROM sessions WHERE user_id = $userId', { userId });
}

/** Whether nobody signs in by the identities, and no reset mail goes to their addresses. */
async function shutOut(
  { db, subject, at }: Effect,
  isShutOut: boolean,
): Promise<'disabled' | 'enabled' | 'superseded'> {
  const { emails, identityIds } = subject;
  const changed = await db.query(
    `UPDATE identities SET told_at = $at,
            disabled_at = CASE WHEN $isShutOut THEN coalesce(disabled_at, now()) END
      WHERE id = ANY ($identityIds) AND (told_at IS NULL OR told_at <= $at) RETURNING id`,
    { identityIds, at, isShutOut },
  );
  await setResetMailStops(db, emails.map(normalizeEmail), { stopped: isShutOut, at });
  if (changed.length < identityIds.length) return 'superseded';
  return isShutOut ? 'disabled' : 'enabled';
}
