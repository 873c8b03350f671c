import { createHash, randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { createApiKey } from '../../../src/accounts/accounts/api-keys.js';
import { refreshTokenContext } from '../../../src/accounts/accounts/identities.js';
import { isResetMailBlocked } from '../../../src/accounts/accounts/reset-mail-blocks.js';
import { addSession, createSession } from '../../../src/accounts/accounts/sessions.js';
import { isProofValid } from '../../../src/accounts/accounts/sign-in.js';
import type { RiscEventRow } from '../../../src/platform/database/models.js';
import { selectFrom } from '../../../src/platform/database/schema/table.js';
import { riscEvents } from '../../../src/platform/database/tables/security-events.js';
import type { EventEffect, ReportedEvent } from '../../../src/types/security-events.js';
import { EventEffects } from '../../../src/accounts/security-events/apply-events.js';
import { EVENT_TYPES, TOKEN_REVOKED } from '../../../src/accounts/security-events/event-types.js';
import type { EventMatching } from '../../../src/accounts/security-events/receive-events.js';
import { findById } from '../../../src/money/sessions/session-openings.js';
import { WALLET_ISSUER } from '../../../src/types/sign-in-methods.js';
import { openSession } from '../../gateway/support.js';
import { queryRows, waitingConnections } from '../../platform/database/catalog.js';
import { makeMailToken } from '../../../src/accounts/mail/mail-tokens.js';
import { insertRow } from '../../support/insert-row.js';
import { newUser, testDatabase, type TestDatabase } from '../../support/postgres.js';
import { testSecrets } from '../../support/secrets.js';

const SECRETS = testSecrets();
const ISSUER = 'https://accounts.example.com';
const PLACE = { address: '192.0.2.1', requestId: 'a-request', userAgent: 'Mozilla/5.0' };

let database: TestDatabase;
let effects: EventEffects;
beforeAll(async () => {
  database = await testDatabase();
  effects = new EventEffects(database.db, SECRETS);
});
afterAll(() => database?.close());

/** A user with one session by password and one by the account at the provider. */
interface Person {
  readonly userId: string;
  /** Email address of the user's account on the platform. */
  readonly email: string;
  /** Subject of the account at the provider. */
  readonly sub: string;
  readonly label: string;
  readonly identityId: string;
}

let ada: Person;
let bob: Person;
beforeEach(async () => {
  [ada, bob] = await Promise.all([person(), person()]);
});

async function person(): Promise<Person> {
  const userId = await newUser(database);
  const made = { sub: randomUUID(), label: `${randomUUID()}@mail.example.com` };
  const identityId = await link(userId, made);
  await signIn(userId);
  const by = { userId, requestId: 'a-request' };
  await createApiKey(database.db, by, { name: 'ci', site: 'here' });
  return { userId, email: `${userId}@example.com`, identityId, ...made };
}

const refreshTokenOf = (sub: string) => `1//04-${sub}-and-more`;

async function link(
  userId: string,
  { sub, label, issuer = ISSUER }: { sub: string; label: string; issuer?: string },
): Promise<string> {
  const id = randomUUID();
  const identity = { id, userId, kind: 'google', issuer, subject: sub, label } as const;
  await database.db.asPlatform().transaction((db) =>
    db.Identity.create({
      ...identity,
      refreshToken: SECRETS.seal(refreshTokenOf(sub), refreshTokenContext(id)),
    }),
  );
  return id;
}

const signIn = (userId: string) =>
  database.db.asPlatform().transaction(async (db) => {
    await addSession(db, userId, 'password', PLACE);
    await addSession(db, userId, 'google', PLACE);
  });

interface State {
  readonly sessions: number;
  readonly keys: number;
  /** True if the user can sign in with the account at the provider. */
  readonly signsIn: boolean;
  readonly refreshes: boolean;
  /** True if reset mails are sent: to the provider account's mailbox, and to the account's own address. */
  readonly resetMails: readonly [boolean, boolean];
}

async function stateOf({ email, identityId, label, userId }: Person): Promise<State> {
  return database.db.asPlatform().transaction(async (db) => {
    const identity = await db.Identity.findByPk(identityId);
    const sessions = await db.Session.findAll({ where: { userId } });
    return {
      sessions: sessions.length,
      keys: await db.ApiKey.count({ where: { userId } }),
      signsIn: identity?.disabledAt === null,
      refreshes: identity?.refreshToken !== null,
      resetMails: [!(await isResetMailBlocked(db, label)), !(await isResetMailBlocked(db, email))],
    };
  });
}

const UNTOUCHED: State = {
  sessions: 2,
  keys: 1,
  signsIn: true,
  refreshes: true,
  resetMails: [true, true],
};

type Reported = Omit<ReportedEvent, 'type'> & { readonly type: keyof typeof EVENT_TYPES };

/** Stores events as the receiver does. @returns the id of the row. */
async function applied(
  events: readonly Reported[],
  { matching = 'subject', at = new Date() }: { matching?: EventMatching; at?: Date } = {},
): Promise<string> {
  const id = randomUUID();
  await insertRow(database.db.asPlatform(), riscEvents, {
    jti: id,
    id,
    issuer: ISSUER,
    matching,
    events: events.map((event) => ({ ...event, type: EVENT_TYPES[event.type] })),
    happenedAt: at,
  });
  return id;
}

/** Replaces the events of a token. */
const setEvents = (id: string, events: readonly ReportedEvent[]) =>
  database.db.asPlatform().query('UPDATE risc_events SET events = $events WHERE id = $id', {
    id,
    events: JSON.stringify(events),
  });

async function apply(...events: Parameters<typeof applied>): Promise<EventEffect[]> {
  const outcomes = await effects.apply(await applied(...events));
  return outcomes.map(({ effect }) => effect);
}

/** Stores and applies an event for one revoked token. */
async function applyRevoked(token: ReportedEvent['token']): Promise<EventEffect[]> {
  const id = await applied([]);
  const events = [{ type: TOKEN_REVOKED, ...(token && { token }) }];
  await setEvents(id, events);
  return (await effects.apply(id)).map(({ effect }) => effect);
}

const sha512 = (data: string | Buffer) => createHash('sha512').update(data).digest();

const earlier = (seconds: number) => new Date(Date.now() - seconds * 1_000);

describe('effects of each event', () => {
  test('blocks sign-in, API keys and reset mails of a hijacked account', async () => {
    const done = await apply([{ type: 'account-disabled', sub: ada.sub, reason: 'hijacking' }]);
    expect(done).toEqual(['disabled']);
    expect(await stateOf(ada)).toEqual({
      sessions: 0,
      keys: 0,
      signsIn: false,
      refreshes: true,
      resetMails: [false, true],
    });
    expect(await stateOf(bob)).toEqual(UNTOUCHED);
  });

  test(
    'closes the payment sessions whose ids a hijacker may know',
    { tags: 'attack' },
    async () => {
      const [kept, linked, other] = await Promise.all([
        openSession(database.db, 1_000n),
        openSession(database.db, 1_000n),
        openSession(database.db, 1_000n),
      ]);
      await queryRows(
        database.ownerUrl,
        `UPDATE payment_sessions SET user_id = '${ada.userId}' WHERE id = '${kept.id}'`,
      );
      await database.db.asPlatform().transaction((db) =>
        db.Identity.create({
          ...{ id: randomUUID(), userId: ada.userId, kind: 'wallet', issuer: WALLET_ISSUER },
          ...{ subject: linked.address, label: linked.address },
        }),
      );
      const states = async () =>
        Promise.all(
          [kept, linked, other].map(async ({ id }) => (await findById(database.db, id))?.state),
        );
      await apply([{ type: 'sessions-revoked', sub: ada.sub }]);
      expect(await states()).toEqual(['active', 'active', 'active']);
      await apply([{ type: 'account-disabled', sub: ada.sub, reason: 'hijacking' }]);
      expect(await states()).toEqual(['settling', 'settling', 'active']);
    },
  );

  test('invalidates reset links that a hijacker could use to set a password', async () => {
    const linked = async (person: Person, email: string) => {
      const mailed = { userId: person.userId, email };
      await database.db.asPlatform().transaction(async (db) => {
        await makeMailToken(db, 'reset-password', mailed);
        await makeMailToken(db, 'verify-email', mailed);
      });
    };
    await linked(ada, ada.label);
    await linked(bob, bob.label);
    const event = { type: 'account-disabled', sub: ada.sub } as const;
    await apply([{ ...event, reason: 'bulk-account' }]);
    const left = () =>
      database.db
        .asPlatform()
        .query(
          'SELECT user_id AS "userId", kind FROM mail_tokens WHERE user_id IN ($ada, $bob) ORDER BY kind',
          { ada: ada.userId, bob: bob.userId },
        );
    expect(await left()).toHaveLength(4);
    await apply([{ ...event, reason: 'hijacking' }]);
    const reset = (await left()).filter((each) => Object.values(each).includes('reset-password'));
    expect(reset).toEqual([{ userId: bob.userId, kind: 'reset-password' }]);
    expect(await left()).toHaveLength(3);
  });

  test.each([{ reason: 'bulk-account' }, { reason: 'Hijacking ' }, {}])(
    'only ends the sessions of an account disabled for %j',
    async (reason) => {
      expect(await apply([{ type: 'account-disabled', sub: ada.sub, ...reason }])).toEqual([
        'signed-out',
      ]);
      expect(await stateOf(ada)).toEqual({ ...UNTOUCHED, sessions: 0 });
      expect(await stateOf(bob)).toEqual(UNTOUCHED);
    },
  );

  test('restores sign-in and reset mails of an enabled account', async () => {
    await apply([{ type: 'account-disabled', sub: ada.sub, reason: 'hijacking' }]);
    expect(await apply([{ type: 'account-enabled', sub: ada.sub }])).toEqual(['enabled']);
    expect(await stateOf(ada)).toEqual({ ...UNTOUCHED, sessions: 0, keys: 0 });
  });

  test('ends all sessions when sessions are revoked', async () => {
    expect(await apply([{ type: 'sessions-revoked', sub: ada.sub }])).toEqual(['signed-out']);
    expect(await stateOf(ada)).toEqual({ ...UNTOUCHED, sessions: 0 });
    expect(await stateOf(bob)).toEqual(UNTOUCHED);
  });

  test('removes the tokens and ends all sessions when tokens are revoked', async () => {
    expect(await apply([{ type: 'tokens-revoked', sub: ada.sub }])).toEqual(['token-removed']);
    expect(await stateOf(ada)).toEqual({ ...UNTOUCHED, sessions: 0, refreshes: false });
    expect(await stateOf(bob)).toEqual(UNTOUCHED);
  });

  test.each([
    ['prefix', (token: string) => token.slice(0, 16)],
    ['hash_base64_sha512_sha512', (token: string) => sha512(sha512(token)).toString('base64')],
  ])('removes only the revoked token that is named by its %s', async (by, name) => {
    const token = { by, value: name(refreshTokenOf(ada.sub)) };
    expect(await applyRevoked(token)).toEqual(['token-removed']);
    expect(await stateOf(ada)).toEqual({ ...UNTOUCHED, refreshes: false });
    expect(await stateOf(bob)).toEqual(UNTOUCHED);
    expect(await applyRevoked(token)).toEqual(['unknown']);
  });

  test('finds no token by a name that could match any token', async () => {
    for (const [by, value] of [
      ['prefix', ''],
      ['prefix', refreshTokenOf(ada.sub).slice(0, 15)],
      ['hash_base64_sha512_sha512', ''],
      ['constructor', refreshTokenOf(ada.sub)],
    ] as const) {
      expect(await applyRevoked({ by, value })).toEqual(['unknown']);
    }
    expect(await applyRevoked(undefined)).toEqual(['ignored']);
    expect(await stateOf(ada)).toEqual(UNTOUCHED);
  });

  test('only records that credentials should be changed', async () => {
    const type = 'account-credential-change-required';
    expect(await apply([{ type, sub: ada.sub }])).toEqual(['logged']);
    expect(await stateOf(ada)).toEqual(UNTOUCHED);
  });

  test('acknowledges a verification for any account', async () => {
    expect(await apply([{ type: 'verification' }])).toEqual(['acknowledged']);
    expect(await apply([{ type: 'verification', sub: ada.sub }])).toEqual(['acknowledged']);
    expect(await stateOf(ada)).toEqual(UNTOUCHED);
  });

  test('records an unknown event type as ignored', async () => {
    const id = await applied([{ type: 'sessions-revoked', sub: ada.sub }]);
    const events = [{ type: 'https://schemas.example.com/account-purged', sub: ada.sub }];
    await setEvents(id, events);
    expect(await effects.apply(id)).toEqual([{ type: events[0]?.type, effect: 'ignored' }]);
    expect(await stateOf(ada)).toEqual(UNTOUCHED);
  });

  test('applies all events of one token', async () => {
    const done = await apply([
      { type: 'sessions-revoked', sub: ada.sub },
      { type: 'tokens-revoked', sub: bob.sub },
      { type: 'sessions-revoked', sub: 'nobody' },
    ]);
    expect(done).toEqual(['signed-out', 'token-removed', 'unknown']);
    expect([(await stateOf(ada)).sessions, (await stateOf(bob)).sessions]).toEqual([0, 0]);
  });
});

describe('the subject of an event', { tags: 'attack' }, () => {
  const type = 'sessions-revoked';
  const endedOf = async (...people: Person[]) => {
    const states = await Promise.all(people.map(stateOf));
    return states.map(({ sessions }) => sessions === 0);
  };

  test('matches the account with the id, whatever email address the event has', async () => {
    await apply([{ type, sub: ada.sub, email: bob.email }]);
    expect(await endedOf(ada, bob)).toEqual([true, false]);
  });

  test('matches the account with the email address in any case when the event has no id', async () => {
    expect(await apply([{ type, email: ada.email.toUpperCase() }])).toEqual(['signed-out']);
    expect(await endedOf(ada, bob)).toEqual([true, false]);
  });

  test('matches no account when the email address belongs to an account with another id', async () => {
    expect(await apply([{ type, sub: 'recycled', email: ada.email }])).toEqual(['unknown']);
    expect(await endedOf(ada)).toEqual([false]);
  });

  test('matches the account with the email address when the id is unknown and the account has no other id at the provider', async () => {
    const userId = await newUser(database);
    await signIn(userId);
    await link(userId, { sub: 'x', label: 'x', issuer: 'https://other.example.com' });
    const eve = { ...ada, userId };
    const email = `${userId}@example.com`;
    const event = { type: 'account-disabled', sub: randomUUID(), email, reason: 'hijacking' };
    expect(await apply([{ ...event, type: 'account-disabled' }])).toEqual(['disabled']);
    expect((await stateOf(eve)).sessions).toBe(0);
    expect(await isResetMailBlocked(database.db.asPlatform(), email)).toBe(true);
  });

  test('matches only by email address at the legacy receiver', async () => {
    const matching = 'email';
    expect(await apply([{ type, sub: ada.sub }], { matching })).toEqual(['unknown']);
    await apply([{ type, sub: ada.sub, email: bob.email }], { matching });
    expect(await endedOf(ada, bob)).toEqual([false, true]);
    await apply([{ type: 'account-disabled', email: ada.email, reason: 'hijacking' }], {
      matching,
    });
    expect(await stateOf(ada)).toMatchObject({ signsIn: false, resetMails: [false, false] });
  });

  test('matches no account with the same id at another provider', async () => {
    const userId = await newUser(database);
    await signIn(userId);
    const sub = randomUUID();
    await link(userId, { sub, label: 'x', issuer: 'https://other.example.com' });
    expect(await apply([{ type, sub }])).toEqual(['unknown']);
    expect(await endedOf({ ...ada, userId })).toEqual([false]);
  });
});

describe('security events to apply', () => {
  test('applies an event once and erases its subject', async () => {
    const id = await applied([{ type: 'sessions-revoked', sub: ada.sub, email: ada.email }]);
    const first = await effects.apply(id);
    await signIn(ada.userId);
    expect(await effects.apply(id)).toEqual(first);
    expect((await stateOf(ada)).sessions).toBe(2);
    const [row] = await database.db
      .asPlatform()
      .query<RiscEventRow>(`${selectFrom(riscEvents)} WHERE id = $id`, { id });
    expect(row).toMatchObject({ events: [], outcomes: first, appliedAt: expect.any(Date) });
    expect(JSON.stringify(row)).not.toContain(ada.sub);
  });

  test('applies an event once if several processes apply it', async () => {
    const id = await applied([{ type: 'sessions-revoked', sub: ada.sub }]);
    await Promise.all(Array.from({ length: 4 }, () => effects.apply(id)));
    const audited = await database.db
      .asUser(ada.userId)
      .query(`SELECT FROM audit_log WHERE action = 'security-event.sessions-revoked'`);
    expect(audited).toHaveLength(1);
  });

  test('changes nothing for an event that no longer exists', async () => {
    expect(await effects.apply('none')).toEqual([]);
  });

  test('writes the event to the audit log of its subject', async () => {
    const id = await applied([{ type: 'account-credential-change-required', sub: ada.sub }]);
    await effects.apply(id);
    const [line] = await database.db
      .asUser(ada.userId)
      .query(`SELECT actor, action, detail FROM audit_log WHERE actor = 'identity-provider'`);
    expect(line).toEqual({
      actor: 'identity-provider',
      action: 'security-event.account-credential-change-required',
      detail: { event: id, effect: 'logged' },
    });
  });

  test('does not undo a later event with an earlier one that arrives after it', async () => {
    const sub = { sub: ada.sub };
    const hijacking = { type: 'account-disabled', ...sub, reason: 'hijacking' } as const;
    await apply([{ type: 'account-enabled', ...sub }], { at: earlier(60) });
    expect(await apply([hijacking], { at: earlier(120) })).toEqual(['superseded']);
    expect(await stateOf(ada)).toEqual({ ...UNTOUCHED, sessions: 0, keys: 0 });

    expect(await apply([hijacking], { at: earlier(30) })).toEqual(['disabled']);
    const enabled = [{ type: 'account-enabled', ...sub }] as const;
    expect(await apply(enabled, { at: earlier(45) })).toEqual(['superseded']);
    expect(await stateOf(ada)).toMatchObject({ signsIn: false, resetMails: [false, true] });
    expect(await apply(enabled, { at: earlier(15) })).toEqual(['enabled']);
  });
});

test(
  'leaves no session to a user who signs in while being blocked',
  { tags: 'attack' },
  async () => {
    const { identityId, sub, userId } = ada;
    const user = { id: userId, name: '', email: ada.email, isAdmin: false };
    const id = await applied([{ type: 'account-disabled', sub, reason: 'hijacking' }]);
    const proof = { user, method: 'google', identityId } as const;
    const signIns = Array.from({ length: 20 }, () => createSession(database.db, proof, PLACE));
    await Promise.all([...signIns.slice(0, 10), effects.apply(id), ...signIns.slice(10)]);
    expect((await stateOf(ada)).sessions).toBe(0);
    expect(await createSession(database.db, proof, PLACE)).toBeUndefined();
  },
);

test(
  'ends the session of a sign-in that is in flight when all sessions are revoked',
  { tags: 'attack' },
  async () => {
    const { identityId, sub, userId } = ada;
    const user = { id: userId, name: '', email: ada.email, isAdmin: false };
    const id = await applied([{ type: 'sessions-revoked', sub }]);
    let applying: Promise<unknown> | undefined;
    await database.db.asPlatform().transaction(async (db) => {
      expect(await isProofValid(db, { user, method: 'google', identityId })).toBe(true);
      applying = effects.apply(id);
      await expect.poll(() => waitingConnections(database.ownerUrl)).toBe(1);
      await addSession(db, userId, 'google', PLACE);
    });
    await applying;
    expect((await stateOf(ada)).sessions).toBe(0);
  },
);
