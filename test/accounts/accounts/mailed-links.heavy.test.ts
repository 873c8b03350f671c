import { randomUUID } from 'node:crypto';
import { generatePrivateKey } from 'viem/accounts';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { Listening } from '../../../api/http/server.js';
import { createWeb } from '../../../api/web/web.js';
import { SESSION_COOKIE } from '../../../api/auth/session-cookie.js';
import { hashPassword } from '../../../src/accounts/accounts/password.js';
import { setResetMailBlocks } from '../../../src/accounts/accounts/reset-mail-blocks.js';
import { addSession } from '../../../src/accounts/accounts/sessions.js';
import { Database } from '../../../src/platform/database/database.js';
import { reportHost } from '../../../src/agents/hosts/hosts.js';
import type { MailKind } from '../../../src/types/mail-kinds.js';
import { mailSettings } from '../../../src/accounts/mail/settings.js';
import { makeMailToken, consumeMailToken } from '../../../src/accounts/mail/mail-tokens.js';
import { requestMail } from '../../../src/accounts/mail/request-mail.js';
import { queryRows, waitingConnections } from '../../platform/database/catalog.js';
import { giveCredits, openSession } from '../../gateway/support.js';
import { databaseAlone } from '../../support/dependencies.js';
import { call, newAddress, type Answer, type CallOptions } from '../../support/http.js';
import { tokenIn } from '../../../dev/accounts/mailbox.js';
import { sendWaitingMails, type SentMail } from '../../support/mails.js';
import { testDatabase, type TestDatabase } from '../../support/postgres.js';

const attack = { tags: 'attack' };
const PASSWORD = 'an-old-password';

interface Person {
  readonly id: string;
  readonly email: string;
  readonly cookie: string;
}

let database: TestDatabase;
let alone: Awaited<ReturnType<typeof databaseAlone>>;
let web: Listening;
let passwordHash: string;

beforeAll(async () => {
  database = await testDatabase();
  passwordHash = await hashPassword(PASSWORD, 'test');
  alone = await databaseAlone(database);
  web = await createWeb(alone.dependencies).listen('127.0.0.1', 0);
});
afterAll(async () => {
  await web?.close();
  await alone?.close();
  await database?.close();
});
beforeEach(async () => void (await sendWaitingMails(database.db)));

const owner = (sql: string) => queryRows<Record<string, unknown>>(database.ownerUrl, sql);
const newEmail = () => `${randomUUID()}@example.com`;

/** Calls the web API with a person's session, or without one. */
const ask = (
  person: Pick<Person, 'cookie'> | undefined,
  method: string,
  path: string,
  { headers, ...options }: CallOptions = {},
): Promise<Answer> =>
  call(web.url, method, path, {
    ...options,
    headers: { ...(person && { cookie: person.cookie }), ...headers },
  });

async function signIn(email: string, password = PASSWORD): Promise<string | undefined> {
  const answer = await ask(undefined, 'POST', '/api/auth/login', { body: { email, password } });
  return answer.headers.get('set-cookie')?.split(';')[0];
}

/** Creates a signed-in user, with a verified or an unverified address. */
async function person(emailVerifiedAt: Date | null, email = newEmail()): Promise<Person> {
  const id = randomUUID();
  const facts = { id, email, name: 'Ada', passwordHash, emailVerifiedAt };
  await database.db.asPlatform().transaction((db) => db.User.create(facts));
  return { id, email, cookie: await newSession(id) };
}

/** Opens a session without hashing a password and returns its cookie. */
async function newSession(userId: string): Promise<string> {
  const place = { address: newAddress(), requestId: 'test', userAgent: undefined };
  const { token } = await database.db
    .asPlatform()
    .transaction((db) => addSession(db, userId, 'password', place));
  return `${SESSION_COOKIE}=${token}`;
}

const unverified = (email?: string) => person(null, email);
const verified = () => person(new Date());

const forgot = (email: string, options: CallOptions = {}) =>
  ask(undefined, 'POST', '/api/auth/forgot-password', { ...options, body: { email } });
const reset = (token: string, password = `new ${randomUUID()}`, more = {}) =>
  ask(undefined, 'POST', '/api/auth/reset-password', { body: { token, password, ...more } });
const verify = (person: Person | undefined, token: string) =>
  ask(person, 'POST', '/api/auth/verify-email', { body: { token } });
const resend = (person: Person | undefined) => ask(person, 'POST', '/api/auth/verify-email/resend');
const settingsOf = async (person: Person) => (await ask(person, 'GET', '/api/settings')).body.user;
const change = (person: Person, body: unknown) => ask(person, 'PATCH', '/api/settings', { body });

/** Sends the waiting mails and returns the only one of this kind to the address. */
async function mailTo(address: string, kind: MailKind): Promise<SentMail> {
  const mails = (await sendWaitingMails(database.db)).filter(
    (mail) => mail.to === address && mail.kind === kind,
  );
  if (mails.length !== 1 || !mails[0])
    throw new Error(`expected one mail, found ${mails.length} ${kind} to ${address}`);
  return mails[0];
}

async function resetTokenFor(email: string): Promise<string> {
  await forgot(email);
  return tokenIn(await mailTo(email, 'reset-password'));
}

/** Reports an address as hijacked or recovered, as the identity provider does. */
const stopResets = (email: string, stopped: boolean) =>
  database.db
    .asPlatform()
    .transaction((db) => setResetMailBlocks(db, [email], { stopped, at: new Date() }));

const INVALID = [400, 'Invalid or expired token'];
const reported = ({ body, status }: Answer) => [status, body.error];

describe('registration', () => {
  /** Registers and signs in over the API. */
  async function register(more = {}): Promise<Person> {
    const email = newEmail();
    const body = { email, password: PASSWORD, ...more };
    const { body: made } = await ask(undefined, 'POST', '/api/register', { body });
    return { id: made.id, email, cookie: (await signIn(email)) ?? '' };
  }

  test("registration mails a link that confirms the account's address once", async () => {
    const ada = await register();
    expect(await settingsOf(ada)).toMatchObject({ emailVerified: false, pendingEmail: null });
    const token = tokenIn(await mailTo(ada.email, 'verify-email'));
    const confirmed = await verify(ada, token);
    expect([confirmed.status, confirmed.body]).toEqual([200, { ok: true, email: ada.email }]);
    expect(await settingsOf(ada)).toMatchObject({ emailVerified: true, email: ada.email });
    expect(reported(await verify(ada, token))).toEqual(INVALID);
  });

  test('the mail of a registration contains no advertising user name', attack, async () => {
    const name = 'Claim your prize at https://evil.example';
    const { email } = await register({ name });
    await forgot(email);
    const mails = await sendWaitingMails(database.db);
    expect(mails.map(({ kind }) => kind).sort()).toEqual(['reset-password', 'verify-email']);
    expect(JSON.stringify(mails)).not.toMatch(/evil|prize/);
  });
});

describe('the link that verifies an address', () => {
  test(
    "the verification link confirms nothing without the account's own session",
    attack,
    async () => {
      const [squatter, ada] = [await unverified(), await unverified()];
      await resend(squatter);
      const mails = await sendWaitingMails(database.db);
      const [link] = mails.filter(({ to }) => to === squatter.email);
      const token = link ? tokenIn(link) : '';
      expect((await verify(undefined, token)).status).toBe(401);
      expect(reported(await verify(ada, token))).toEqual(INVALID);
      expect(await settingsOf(squatter)).toMatchObject({ emailVerified: false });
      expect((await verify(squatter, token)).status).toBe(200);
    },
  );

  test('requesting a new verification link invalidates the former one', async () => {
    const ada = await unverified();
    await resend(ada);
    const first = tokenIn(await mailTo(ada.email, 'verify-email'));
    expect((await resend(ada)).body).toEqual({ ok: true });
    const second = tokenIn(await mailTo(ada.email, 'verify-email'));
    expect(reported(await verify(ada, first))).toEqual(INVALID);
    expect((await verify(ada, second)).status).toBe(200);
    expect((await resend(ada)).body).toEqual({ ok: true });
    expect(await sendWaitingMails(database.db)).toEqual([]);
    expect((await resend(undefined)).status).toBe(401);
  });

  test('the verification link is valid for a day and cannot reset the password', async () => {
    const ada = await unverified();
    await resend(ada);
    const token = tokenIn(await mailTo(ada.email, 'verify-email'));
    const [row] = await owner(
      `SELECT extract(epoch FROM expires_at - now())::float8 / 3600 AS hours
         FROM mail_tokens WHERE user_id = '${ada.id}'`,
    );
    expect(row?.hours).toBeCloseTo(24, 0);
    expect(reported(await reset(token))).toEqual(INVALID);
    await owner(`UPDATE mail_tokens SET expires_at = now() WHERE user_id = '${ada.id}'`);
    expect(reported(await verify(ada, token))).toEqual(INVALID);
  });

  test('one of 50 concurrent verifications in two processes succeeds', attack, async () => {
    const ada = await unverified();
    await resend(ada);
    const token = tokenIn(await mailTo(ada.email, 'verify-email'));
    const other = await createWeb(alone.dependencies).listen('127.0.0.1', 0);
    try {
      const answers = await Promise.all(
        Array.from({ length: 50 }, (_, n) =>
          call(n % 2 ? web.url : other.url, 'POST', '/api/auth/verify-email', {
            body: { token },
            headers: { cookie: ada.cookie },
          }),
        ),
      );
      const statuses = answers.map(({ status }) => status).sort();
      expect(statuses).toEqual([200, ...Array<number>(49).fill(400)]);
    } finally {
      await other.close();
    }
  });
});

describe('a forgotten password', () => {
  test(
    'a password reset request gets the same answer with and without an account',
    attack,
    async () => {
      const { email } = await verified();
      const from = newAddress();
      const headersOf = ({ headers }: Answer) =>
        [...headers].filter(([name]) => !/^(date|x-request-id|ratelimit-.*)$/.test(name));
      const [known, unknown] = [await forgot(email, { from }), await forgot(newEmail(), { from })];
      expect(known.status).toBe(200);
      expect(known.body).toEqual({ ok: true, message: expect.any(String) });
      expect(unknown.text).toBe(known.text);
      expect(unknown.status).toBe(200);
      expect(headersOf(unknown)).toEqual(headersOf(known));
      expect((await forgot(email.toUpperCase(), { from })).text).toBe(known.text);
      expect(await owner('SELECT count(*)::integer FROM mails WHERE settled_at IS NULL')).toEqual([
        { count: 2 },
      ]);
      const mails = await sendWaitingMails(database.db);
      expect(mails.map(({ to }) => to)).toEqual([email]);
      expect((await forgot('no address', { from })).status).toBe(400);
    },
  );

  test(
    'a password reset ends all sessions, mails the owner a notice and ends API keys',
    attack,
    async () => {
      const ada = await verified();
      await ask(ada, 'POST', '/api/keys', { body: { name: 'of ada' } });
      const token = await resetTokenFor(ada.email);
      const password = `new ${randomUUID()}`;
      const done = await reset(token, password);
      expect([done.status, done.body]).toEqual([200, { ok: true }]);
      expect(done.headers.get('set-cookie')).toBeNull();
      expect((await ask(ada, 'GET', '/api/settings')).status).toBe(401);
      const again = { ...ada, cookie: (await signIn(ada.email, password)) ?? '' };
      expect((await ask(again, 'GET', '/api/keys')).body.keys).toEqual([]);
      const notice = await mailTo(ada.email, 'password-was-reset');
      expect(notice.text).not.toMatch(/token|http/);
      expect(reported(await reset(token))).toEqual(INVALID);
    },
  );

  test('a password reset keeps the API keys if the request has keepKeys', async () => {
    const ada = await verified();
    await ask(ada, 'POST', '/api/keys', { body: { name: 'of ada' } });
    const [token, password] = [await resetTokenFor(ada.email), `new ${randomUUID()}`];
    expect((await reset(token, password, { keepKeys: true })).status).toBe(200);
    const again = { ...ada, cookie: (await signIn(ada.email, password)) ?? '' };
    expect((await ask(again, 'GET', '/api/keys')).body.keys).toHaveLength(1);
  });

  test('the reset link stays valid when the new password is refused', async () => {
    const { email } = await verified();
    const token = await resetTokenFor(email);
    expect((await reset(token, 'short')).status).toBe(400);
    const common = await reset(token, 'password1');
    expect(reported(common)).toEqual([400, 'Password is too common']);
    const own = await reset(token, email.toUpperCase());
    expect(reported(own)).toEqual([400, 'Password must not be your address']);
    expect((await reset(token)).status).toBe(200);
  });

  test(
    'refuses a reset link that is superseded, an hour old, or meant for verification',
    attack,
    async () => {
      const ada = await verified();
      const older = await resetTokenFor(ada.email);
      const token = await resetTokenFor(ada.email);
      expect(reported(await reset(older))).toEqual(INVALID);
      expect(reported(await verify(ada, token))).toEqual(INVALID);
      const [row] = await owner(
        `SELECT extract(epoch FROM expires_at - now())::float8 / 60 AS minutes
         FROM mail_tokens WHERE user_id = '${ada.id}'`,
      );
      expect(row?.minutes).toBeGreaterThan(50);
      expect(row?.minutes).toBeLessThanOrEqual(60);
      await owner(`UPDATE mail_tokens SET expires_at = now() WHERE user_id = '${ada.id}'`);
      expect(reported(await reset(token))).toEqual(INVALID);
      for (const none of ['x', 'x'.repeat(43), '../../etc/passwd']) {
        expect(reported(await reset(none))).toEqual(INVALID);
      }
      const [user] = await owner(`SELECT password_hash FROM users WHERE id = '${ada.id}'`);
      expect(user).toEqual({ password_hash: passwordHash });
    },
  );

  test('one of several concurrent uses of a reset link sets the password', attack, async () => {
    const { email } = await verified();
    const token = await resetTokenFor(email);
    const passwords = Array.from({ length: 3 }, () => `new ${randomUUID()}`);
    const answers = await Promise.all(passwords.map((password) => reset(token, password)));
    const statuses = answers.map(({ status }) => status);
    expect([...statuses].sort()).toEqual([200, ...Array<number>(2).fill(400)]);
    expect(await signIn(email, passwords[statuses.indexOf(200)])).toBeDefined();
  });

  test('one of 50 transactions in two processes uses a reset token', attack, async () => {
    const { email, id: userId } = await verified();
    const other = new Database(database.url, { maxConnections: 5 });
    try {
      const token = await database.db
        .asPlatform()
        .transaction((db) => makeMailToken(db, 'reset-password', { userId, email }));
      const taken = await Promise.all(
        Array.from({ length: 50 }, (_, n) =>
          (n % 2 ? other : database.db)
            .asPlatform()
            .transaction((db) => consumeMailToken(db, 'reset-password', token)),
        ),
      );
      expect(taken.filter((each) => each !== undefined)).toEqual([{ userId, email }]);
    } finally {
      await other.close();
    }
  });

  test('a reset waits for a concurrent change of the account before it locks its token', async () => {
    const { email, id: userId } = await verified();
    const platform = database.db.asPlatform();
    const token = await platform.transaction((db) =>
      makeMailToken(db, 'reset-password', { userId, email }),
    );
    let taking: Promise<unknown> | undefined;
    await platform.transaction(async (db) => {
      await db.query('SELECT FROM users WHERE id = $userId FOR UPDATE', { userId });
      taking = platform.transaction((other) => consumeMailToken(other, 'reset-password', token));
      await expect.poll(() => waitingConnections(database.ownerUrl)).toBe(1);
      // Two transactions that lock both rows in opposite orders would deadlock.
      await db.query('SELECT FROM mail_tokens WHERE user_id = $userId FOR UPDATE NOWAIT', {
        userId,
      });
    });
    expect(await taking).toEqual({ userId, email });
  });

  test(
    "a reset of a squatter's account hands it to the mailbox's owner without keys and links planted earlier",
    attack,
    async () => {
      const squatter = await unverified();
      await ask(squatter, 'POST', '/api/keys', { body: { name: 'planted' } });
      const bring = async (body?: object) =>
        (await ask(squatter, 'POST', '/api/wallet/walletprov', { body })).body.address;
      // Payments to the first wallet could be moved by whoever imported its key.
      await bring({ privateKey: generatePrivateKey() });
      const made = await bring();
      await change(squatter, { email: newEmail() });
      await owner(
        `INSERT INTO identities (id, user_id, kind, issuer, subject, label, created_at)
       VALUES ('${randomUUID()}', '${squatter.id}', 'github', 'host', '${randomUUID()}', 'x', now());
       INSERT INTO sign_in_hosts (user_id, host, last_at) VALUES ('${squatter.id}', 'theirs', now());
       INSERT INTO provider_keys (user_id, provider, sealed_key, created_at)
       VALUES ('${squatter.id}', 'openai', 'sealed', now())`,
      );
      const token = await resetTokenFor(squatter.email);
      expect((await reset(token, undefined, { keepKeys: true })).status).toBe(200);
      const ada = { ...squatter, cookie: await newSession(squatter.id) };
      expect(await settingsOf(ada)).toMatchObject({ emailVerified: true, pendingEmail: null });
      expect((await ask(ada, 'GET', '/api/keys')).body.keys).toEqual([]);
      const tables = ['identities', 'api_keys', 'provider_keys', 'mail_tokens', 'sign_in_hosts'];
      const left = tables.map((table) =>
        owner(`SELECT FROM ${table} WHERE user_id = '${squatter.id}'`),
      );
      expect((await Promise.all(left)).flat()).toEqual([]);
      const { body } = await ask(ada, 'GET', '/api/wallet/address');
      expect(body).toEqual({ authenticated: true, address: made });
      expect((await ask(squatter, 'GET', '/api/settings')).status).toBe(401);
    },
  );

  describe('agents, wallets and payment sessions of an account that is reset', () => {
    const ids = () => ({ here: randomUUID(), lost: randomUUID() });

    /** Plants an agent on a host, another on a removed host, their wallets, and a payment session. */
    async function plant({ id: userId }: Person) {
      const made = ids();
      const present = {
        capacity: 9,
        ports: { first: 19_100, last: 19_199 },
        engineAvailable: true,
      };
      await reportHost(database.db, { id: 'here', ...present });
      await database.db.asUser(userId).transaction(async (db) => {
        for (const [host, id] of Object.entries(made)) {
          const facts = { name: id, subdomain: id, plan: 'solo' as const, image: 'repository:1' };
          const model = { model: 'provider/model', aiProvider: 'openai' as const, config: {} };
          await db.Agent.create({ id, userId, host, ...facts, ...model, startedAt: new Date() });
          const address = `0x${randomUUID().replaceAll('-', '')}${'0'.repeat(8)}` as const;
          const wallet = { id: randomUUID(), userId, agentId: id, address, sealedKey: null };
          await db.Wallet.create({ ...wallet, kind: 'agent' });
        }
      });
      const session = await openSession(database.db, 1_000_000n);
      await owner(`UPDATE payment_sessions SET user_id = '${userId}' WHERE id = '${session.id}'`);
      await owner(
        `INSERT INTO radio_streams (id, user_id, title, format, password_hash, created_at)
         VALUES ('${made.here}', '${userId}', 'A stream', 'mp3', repeat('0', 64), now())`,
      );
      return { ...made, session: session.id };
    }

    const found = async ({ here, lost, session }: Awaited<ReturnType<typeof plant>>) => ({
      agents: await owner(
        `SELECT a.host, a.desired, a.deleted_at IS NOT NULL AS gone, o.status
           FROM agents a LEFT JOIN operations o ON o.agent_id = a.id AND o.kind = 'delete'
          WHERE a.id IN ('${here}', '${lost}') ORDER BY 1`,
      ),
      wallets: await owner(`SELECT FROM wallets WHERE agent_id IN ('${here}', '${lost}')`),
      session: await owner(`SELECT state FROM payment_sessions WHERE id = '${session}'`),
      streams: await owner(`SELECT FROM radio_streams WHERE id = '${here}'`),
    });

    test(
      'a reset removes agents, payment sessions, wallets and streams from an account that was never verified',
      attack,
      async () => {
        const squatter = await unverified();
        const planted = await plant(squatter);
        expect((await reset(await resetTokenFor(squatter.email))).status).toBe(200);
        expect(await found(planted)).toEqual({
          agents: [
            // A worker hands the request to the agent's supervisor.
            { host: 'here', desired: 'deleted', gone: false, status: 'requested' },
            { host: 'lost', desired: 'deleted', gone: true, status: 'succeeded' },
          ],
          wallets: [],
          session: [{ state: 'settling' }],
          streams: [],
        });
        const ada = { ...squatter, cookie: await newSession(squatter.id) };
        expect((await ask(ada, 'GET', '/api/agents')).body.agents).toEqual([]);
        const removed = await owner(
          `SELECT subject FROM audit_log WHERE user_id = '${ada.id}' AND action = 'agent.delete'`,
        );
        expect(removed.map(({ subject }) => subject).sort()).toEqual(
          [planted.here, planted.lost].sort(),
        );
      },
    );

    test('a reset keeps agents, payment sessions and wallets of a verified account', async () => {
      const ada = await verified();
      const own = await plant(ada);
      expect((await reset(await resetTokenFor(ada.email))).status).toBe(200);
      const { agents, session, streams, wallets } = await found(own);
      expect(agents.map(({ desired }) => desired)).toEqual(['running', 'running']);
      expect([wallets.length, session, streams.length]).toEqual([2, [{ state: 'active' }], 1]);
    });
  });

  test('a reset sets a password for an account without one', async () => {
    const ada = await verified();
    await owner(`UPDATE users SET password_hash = NULL WHERE id = '${ada.id}'`);
    expect(await settingsOf(ada)).toMatchObject({ hasPassword: false });
    expect((await reset(await resetTokenFor(ada.email))).status).toBe(200);
    expect(await settingsOf({ ...ada, cookie: await newSession(ada.id) })).toMatchObject({
      hasPassword: true,
    });
  });

  test(
    'sends no reset link to a hijacked mailbox until the owner has recovered it',
    attack,
    async () => {
      const ada = await verified();
      const early = await resetTokenFor(ada.email);
      await stopResets(ada.email, true);
      expect((await forgot(ada.email)).status).toBe(200);
      expect(await sendWaitingMails(database.db)).toEqual([]);
      expect(reported(await reset(early))).toEqual(INVALID);
      // A link that was being sent when the hijacking was reported.
      const late = await database.db
        .asPlatform()
        .transaction((db) =>
          makeMailToken(db, 'reset-password', { userId: ada.id, email: ada.email }),
        );
      expect(reported(await reset(late))).toEqual(INVALID);
      await stopResets(ada.email, false);
      expect((await reset(await resetTokenFor(ada.email))).status).toBe(200);
    },
  );

  test(
    'an account in deletion gets no reset link, and its earlier link is invalid',
    attack,
    async () => {
      const ada = await verified();
      const early = await resetTokenFor(ada.email);
      const options = { body: { confirm: ada.email } };
      expect((await ask(ada, 'DELETE', '/api/settings', options)).status).toBe(202);
      expect(reported(await reset(early))).toEqual(INVALID);
      expect((await forgot(ada.email)).status).toBe(200);
      expect(await sendWaitingMails(database.db)).toEqual([]);
      const [user] = await owner(`SELECT password_hash FROM users WHERE id = '${ada.id}'`);
      expect(user).toEqual({ password_hash: passwordHash });
    },
  );

  test(
    'sends no reset or verification mail to a wallet account or the built-in user',
    attack,
    async () => {
      const ada = await unverified();
      const address = `0x${randomUUID().replaceAll('-', '')}@wallet.service`;
      await owner(`UPDATE users SET email = '${address}' WHERE id = '${ada.id}'`);
      await sendWaitingMails(database.db);
      expect((await forgot(address)).status).toBe(200);
      expect((await forgot('operator@platform.invalid')).status).toBe(200);
      expect((await resend(ada)).status).toBe(200);
      expect(await sendWaitingMails(database.db)).toEqual([]);
    },
  );
});

describe('the first password of an account without one', () => {
  const setFirst = (person: Person, body: unknown) =>
    ask(person, 'POST', '/api/settings/password', { body });

  test('an account without a password can set its first one right after sign-in, once', async () => {
    const ada = await verified();
    const newPassword = `new ${randomUUID()}`;
    const had = await setFirst(ada, { newPassword });
    expect(reported(had)).toEqual([400, 'currentPassword is required']);
    await owner(`UPDATE users SET password_hash = NULL WHERE id = '${ada.id}'`);
    const guessed = await setFirst(ada, { currentPassword: 'x', newPassword });
    expect(reported(guessed)).toEqual([403, 'Current password is incorrect']);
    const set = await setFirst(ada, { newPassword });
    expect([set.status, set.body]).toEqual([200, { success: true }]);
    const cookie = set.headers.get('set-cookie')?.split(';')[0] ?? '';
    expect(await settingsOf({ ...ada, cookie })).toMatchObject({ hasPassword: true });
    expect((await ask(ada, 'GET', '/api/settings')).status).toBe(401);
  });

  test("an old session cannot set an account's first password", attack, async () => {
    const ada = await verified();
    await owner(
      `UPDATE users SET password_hash = NULL WHERE id = '${ada.id}';
       UPDATE sessions SET created_at = now() - interval '11 minutes' WHERE user_id = '${ada.id}'`,
    );
    const refused = await setFirst(ada, { newPassword: `new ${randomUUID()}` });
    expect([refused.status, refused.body.code]).toEqual([403, 'REAUTHENTICATION_REQUIRED']);
    expect(await settingsOf(ada)).toMatchObject({ hasPassword: false });
  });
});

describe('the profile', () => {
  test("GET /api/settings returns the account's own profile", async () => {
    const ada = await unverified();
    const referralCode = randomUUID().slice(0, 8).toUpperCase();
    await owner(`UPDATE users SET referral_code = '${referralCode}' WHERE id = '${ada.id}'`);
    for (let n = 0; n < 2; n++) await giveCredits(database.db, ada.id, 1_000_000n);
    const shown = await ask(ada, 'GET', '/api/settings');
    expect([shown.status, shown.body]).toEqual([
      200,
      {
        user: {
          id: ada.id,
          name: 'Ada',
          email: ada.email,
          pendingEmail: null,
          isAdmin: false,
          emailVerified: false,
          hasPassword: true,
          plan: null,
          referralCode,
          credits: '2.000000',
          createdAt: expect.any(String),
        },
      },
    ]);
    expect((await ask(undefined, 'GET', '/api/settings')).status).toBe(401);
  });

  test.each(['POST', 'PATCH'])(
    'changes the name by %s and ignores fields that users cannot set',
    async (method) => {
      const ada = await verified();
      const before = await settingsOf(ada);
      const body = { name: ' Ada Lovelace ', isAdmin: true, plan: 'network', credits: 7, id: 'x' };
      const answer = await ask(ada, method, '/api/settings', { body });
      expect(answer.status).toBe(200);
      expect(answer.body.user).toEqual({ ...before, name: 'Ada Lovelace' });
      expect(await settingsOf(ada)).toEqual(answer.body.user);
      for (const bad of [{}, { name: ' ' }, { name: 'a\u202eb' }, { email: 'none' }, { name: 7 }]) {
        expect((await ask(ada, method, '/api/settings', { body: bad })).status).toBe(400);
      }
      const wallet = await ask(ada, method, '/api/settings', {
        body: { email: 'x@wallet.service' },
      });
      expect(reported(wallet)).toEqual([400, 'Invalid email']);
    },
  );

  test('changes the email address once it is confirmed, and mails the former address a notice', async () => {
    const ada = await verified();
    const email = newEmail();
    const asked = await change(ada, { email: email.toUpperCase() });
    expect(asked.body.user).toMatchObject({ email: ada.email, pendingEmail: email });
    const mails = await sendWaitingMails(database.db);
    expect(mails.map(({ kind, to }) => [kind, to]).sort()).toEqual([
      ['change-email', email],
      ['email-change-asked', ada.email],
    ]);
    const [link] = mails.filter(({ to }) => to === email);
    expect(mails.find(({ to }) => to === ada.email)?.text).not.toContain(email);
    const early = await resetTokenFor(ada.email);
    const confirmed = await verify(ada, link ? tokenIn(link) : '');
    expect(confirmed.body).toEqual({ ok: true, email });
    expect(await settingsOf(ada)).toMatchObject({
      email,
      pendingEmail: null,
      emailVerified: true,
    });
    const notice = await mailTo(ada.email, 'email-changed');
    expect(notice.text).not.toContain(email);
    // A reset link sent to the former mailbox is invalid.
    expect(reported(await reset(early))).toEqual(INVALID);
    await forgot(ada.email);
    expect(await sendWaitingMails(database.db)).toEqual([]);
    // The link stays invalid even if the account gets its former address back.
    await owner(`UPDATE users SET email = '${ada.email}' WHERE id = '${ada.id}'`);
    expect(reported(await reset(early))).toEqual(INVALID);
    await owner(`UPDATE users SET email = '${email}' WHERE id = '${ada.id}'`);
    // A reset link that was being sent to the former address is invalid too.
    const late = await database.db
      .asPlatform()
      .transaction((db) =>
        makeMailToken(db, 'reset-password', { userId: ada.id, email: ada.email }),
      );
    expect(reported(await reset(late))).toEqual(INVALID);
  });

  test(
    'the account whose link is confirmed gets an address that two accounts request',
    attack,
    async () => {
      const [ada, mallory, email] = [await verified(), await verified(), newEmail()];
      await change(mallory, { email });
      await sendWaitingMails(database.db);
      await change(ada, { email });
      const token = tokenIn(await mailTo(email, 'change-email'));
      expect(reported(await verify(mallory, token))).toEqual(INVALID);
      expect(await settingsOf(mallory)).toMatchObject({ email: mallory.email });
      expect((await verify(ada, token)).body).toEqual({ ok: true, email });
    },
  );

  test('cancels a pending email change', async () => {
    const ada = await verified();
    const email = newEmail();
    await change(ada, { email });
    const token = tokenIn(await mailTo(email, 'change-email'));
    await resend(ada);
    const again = tokenIn(await mailTo(email, 'change-email'));
    expect(reported(await verify(ada, token))).toEqual(INVALID);
    const back = await change(ada, { email: ada.email });
    expect(back.body.user).toMatchObject({ email: ada.email, pendingEmail: null });
    expect(reported(await verify(ada, again))).toEqual(INVALID);
  });

  test(
    "changing to another account's address gets the usual answer, but no link",
    attack,
    async () => {
      const [ada, bob] = [await verified(), await verified()];
      const free = await change(ada, { email: newEmail() });
      const taken = await change(ada, { email: bob.email });
      const mask = ({ text }: Answer) => text.replace(/"pendingEmail":"[^"]*"/, '');
      expect([taken.status, mask(taken)]).toEqual([free.status, mask(free)]);
      const mails = await sendWaitingMails(database.db);
      expect(mails.filter(({ to }) => to === bob.email)).toEqual([]);
      expect(mails.filter(({ to }) => to === ada.email)).toHaveLength(2);
    },
  );

  test(
    'does not change to an address that another account has registered since',
    attack,
    async () => {
      const ada = await verified();
      const email = newEmail();
      await change(ada, { email });
      const token = tokenIn(await mailTo(email, 'change-email'));
      const bob = await unverified(email);
      expect(reported(await verify(ada, token))).toEqual(INVALID);
      expect(await settingsOf(ada)).toMatchObject({ email: ada.email });
      expect(await settingsOf(bob)).toMatchObject({ email, emailVerified: false });
    },
  );

  test('an old session cannot change the email address', attack, async () => {
    const ada = await verified();
    await owner(
      `UPDATE sessions SET created_at = now() - interval '11 minutes' WHERE user_id = '${ada.id}'`,
    );
    const refused = await change(ada, { email: newEmail() });
    expect([refused.status, refused.body.code]).toEqual([403, 'REAUTHENTICATION_REQUIRED']);
    expect((await change(ada, { name: 'Still Ada' })).status).toBe(200);
    expect(await settingsOf(ada)).toMatchObject({ pendingEmail: null });
  });
});

describe('rate limits', () => {
  test.each([
    ['POST', '/api/register', 10],
    ['POST', '/api/auth/login', 60],
    ['POST', '/api/auth/forgot-password', 10],
    ['POST', '/api/auth/reset-password', 10],
    ['POST', '/api/auth/verify-email', 60],
    ['POST', '/api/auth/verify-email/resend', 10],
    ['POST', '/api/settings/password', 60],
    ['PATCH', '/api/settings', 60],
    ['DELETE', '/api/settings', 60],
    ['GET', '/api/auth/google', 60],
    ['GET', '/api/auth/google/callback', 60],
    ['GET', '/api/auth/github', 60],
    ['GET', '/api/auth/github/callback', 60],
    ['POST', '/api/auth/nonce', 60],
    ['POST', '/api/wallet-auth', 60],
    ['POST', '/api/auth/farcaster/verify', 30],
    ['POST', '/api/auth/farcaster/refresh', 30],
    ['POST', '/api/settings/identities/wallet', 20],
    ['POST', '/api/settings/identities/farcaster', 30],
  ])('a client address may call %s %s %i times a minute', attack, async (method, path, times) => {
    const { headers } = await ask(undefined, method, path, method === 'GET' ? {} : { body: {} });
    expect(headers.get('ratelimit-limit')).toBe(String(times));
  });

  test('repeated reset requests send one mail while it is pending', async () => {
    const { email } = await verified();
    const asked = await Promise.all(Array.from({ length: 8 }, () => forgot(email)));
    expect(new Set(asked.map(({ status, text }) => `${status} ${text}`)).size).toBe(1);
    const [mail, ...more] = await sendWaitingMails(database.db);
    expect(more).toEqual([]);
    expect((await reset(mail ? tokenIn(mail) : '')).status).toBe(200);
    await sendWaitingMails(database.db);
    // A mail that was abandoned a day ago does not count as pending.
    await forgot(email);
    await owner(
      `UPDATE mails SET requested_at = now() - interval '25 hours' WHERE address = '${email}'`,
    );
    await forgot(email);
    expect(await sendWaitingMails(database.db)).toHaveLength(2);
  });

  test('concurrent mail requests to one address store one mail', async () => {
    const platform = database.db.asPlatform();
    const wanted = { kind: 'reset-password', address: newEmail() } as const;
    let beside: Promise<void> | undefined;
    await platform.transaction(async (db) => {
      await requestMail(db, wanted);
      beside = platform.transaction((other) => requestMail(other, wanted));
      await expect.poll(() => waitingConnections(database.ownerUrl)).toBe(1);
    });
    await beside;
    expect(await owner(`SELECT FROM mails WHERE address = '${wanted.address}'`)).toHaveLength(1);
  });

  test(
    'sends an address five mails of a kind an hour and answers further requests in the same way',
    attack,
    async () => {
      const { email } = await verified();
      const sent: number[] = [];
      const answers: string[] = [];
      for (let n = 0; n < 7; n++) {
        const { status, text } = await forgot(email);
        answers.push(`${status} ${text}`);
        sent.push((await sendWaitingMails(database.db)).length);
      }
      expect(new Set(answers).size).toBe(1);
      expect(sent).toEqual([1, 1, 1, 1, 1, 0, 0]);
      await owner(
        `UPDATE mails SET requested_at = now() - interval '61 minutes' WHERE address = '${email}'`,
      );
      await forgot(email);
      expect(await sendWaitingMails(database.db)).toHaveLength(1);
    },
  );

  test(
    'limits the stored mails for an address and the requests from a client address',
    attack,
    async () => {
      const nobody = newEmail();
      for (let n = 0; n < 7; n++) {
        await forgot(nobody);
        await sendWaitingMails(database.db);
      }
      const [stored] = await owner(
        `SELECT count(*)::integer FROM mails WHERE address = '${nobody}'`,
      );
      expect(stored).toEqual({ count: 5 });
      const from = newAddress();
      const statuses: number[] = [];
      for (let n = 0; n < 11; n++) statuses.push((await forgot('none', { from })).status);
      expect(statuses).toEqual([...Array<number>(10).fill(400), 429]);
      const body = { token: '', password: '' };
      const tried: number[] = [];
      for (let n = 0; n < 11; n++) {
        const options = { body, from };
        tried.push((await ask(undefined, 'POST', '/api/auth/reset-password', options)).status);
      }
      expect(tried).toEqual([...Array<number>(10).fill(400), 429]);
    },
  );
});

describe('in production without a mail server', () => {
  test('without a mail server, endpoints that need mail answer 503 and all others work', async () => {
    const { dependencies } = alone;
    const mail = mailSettings.settings(
      { smtpUrl: undefined, from: undefined },
      { production: true },
    );
    const settings = { ...dependencies.settings, mail };
    const production = await createWeb({ ...dependencies, settings }).listen('127.0.0.1', 0);
    try {
      const ada = await verified();
      const asAda = { cookie: ada.cookie };
      const there = (path: string, body?: unknown, headers = {}) =>
        call(production.url, 'POST', path, { body, headers });
      const unavailable = [503, 'Mail is not configured'];
      expect(reported(await there('/api/auth/forgot-password', { email: ada.email }))).toEqual(
        unavailable,
      );
      expect(reported(await there('/api/auth/verify-email/resend', undefined, asAda))).toEqual(
        unavailable,
      );
      expect(reported(await there('/api/settings', { email: newEmail() }, asAda))).toEqual(
        unavailable,
      );
      expect((await there('/api/settings', { name: 'Ada' }, asAda)).status).toBe(200);
      const email = newEmail();
      const made = await there('/api/register', { email, password: PASSWORD });
      expect(made.status).toBe(200);
      expect(await sendWaitingMails(database.db)).toEqual([]);
    } finally {
      await production.close();
    }
  });
});
