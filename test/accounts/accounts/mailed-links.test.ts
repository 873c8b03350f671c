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
import type { MailKind } from '../../../src/types/mail-kinds.js';
import { mailSettings } from '../../../src/accounts/mail/settings.js';
import { makeMailToken, consumeMailToken } from '../../../src/accounts/mail/mail-tokens.js';
import { requestMail } from '../../../src/accounts/mail/request-mail.js';
import { queryRows, waitingConnections } from '../../platform/database/catalog.js';
import { giveCredits } from '../../gateway/support.js';
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

/** What a person, or nobody, asks of the web API. */
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

/** Somebody new who is signed in, whose address is verified or not. */
async function person(emailVerifiedAt: Date | null, email = newEmail()): Promise<Person> {
  const id = randomUUID();
  const facts = { id, email, name: 'Ada', passwordHash, emailVerifiedAt };
  await database.db.asPlatform().transaction((db) => db.User.create(facts));
  return { id, email, cookie: await newSession(id) };
}

/** A cookie of the user's, without the time that a password takes. */
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
const reset = (token: string, password = `new ${randomUUID()}`) =>
  ask(undefined, 'POST', '/api/auth/reset-password', { body: { token, password } });
const verify = (person: Person | undefined, token: string) =>
  ask(person, 'POST', '/api/auth/verify-email', { body: { token } });
const resend = (person: Person | undefined) => ask(person, 'POST', '/api/auth/verify-email/resend');
const settingsOf = async (person: Person) => (await ask(person, 'GET', '/api/settings')).body.user;
const change = (person: Person, body: unknown) => ask(person, 'PATCH', '/api/settings', { body });

/** The one mail of the kind that goes to the address of all that wait. */
async function mailTo(address: string, kind: MailKind): Promise<SentMail> {
  const mails = (await sendWaitingMails(database.db)).filter(
    (mail) => mail.to === address && mail.kind === kind,
  );
  if (mails.length !== 1 || !mails[0]) throw new Error(`${mails.length} ${kind} to ${address}`);
  return mails[0];
}

async function resetTokenFor(email: string): Promise<string> {
  await forgot(email);
  return tokenIn(await mailTo(email, 'reset-password'));
}

/** What the identity provider has told of an address. */
const stopResets = (email: string, stopped: boolean) =>
  database.db
    .asPlatform()
    .transaction((db) => setResetMailBlocks(db, [email], { stopped, at: new Date() }));

const INVALID = [400, 'Invalid or expired token'];
const told = ({ body, status }: Answer) => [status, body.error];

describe('registration', () => {
  /** As people do it. */
  async function register(more = {}): Promise<Person> {
    const email = newEmail();
    const body = { email, password: PASSWORD, ...more };
    const { body: made } = await ask(undefined, 'POST', '/api/register', { body });
    return { id: made.id, email, cookie: (await signIn(email)) ?? '' };
  }

  test('mails a link, which the account confirms its address by, once', async () => {
    const ada = await register();
    expect(await settingsOf(ada)).toMatchObject({ emailVerified: false, pendingEmail: null });
    const token = tokenIn(await mailTo(ada.email, 'verify-email'));
    const confirmed = await verify(ada, token);
    expect([confirmed.status, confirmed.body]).toEqual([200, { ok: true, email: ada.email }]);
    expect(await settingsOf(ada)).toMatchObject({ emailVerified: true, email: ada.email });
    expect(told(await verify(ada, token))).toEqual(INVALID);
  });

  test('of a name that advertises mails nothing of it', attack, async () => {
    const name = 'Claim your prize at https://evil.example';
    const { email } = await register({ name });
    await forgot(email);
    const mails = await sendWaitingMails(database.db);
    expect(mails.map(({ kind }) => kind).sort()).toEqual(['reset-password', 'verify-email']);
    expect(JSON.stringify(mails)).not.toMatch(/evil|prize/);
  });
});

describe('the link that verifies an address', () => {
  test('confirms nothing for whoever merely reads the mailbox', attack, async () => {
    const [squatter, ada] = [await unverified(), await unverified()];
    await resend(squatter);
    const mails = await sendWaitingMails(database.db);
    const [link] = mails.filter(({ to }) => to === squatter.email);
    const token = link ? tokenIn(link) : '';
    expect((await verify(undefined, token)).status).toBe(401);
    expect(told(await verify(ada, token))).toEqual(INVALID);
    expect(await settingsOf(squatter)).toMatchObject({ emailVerified: false });
    expect((await verify(squatter, token)).status).toBe(200);
  });

  test('is mailed once more, and ends the one before it', async () => {
    const ada = await unverified();
    await resend(ada);
    const first = tokenIn(await mailTo(ada.email, 'verify-email'));
    expect((await resend(ada)).body).toEqual({ ok: true });
    const second = tokenIn(await mailTo(ada.email, 'verify-email'));
    expect(told(await verify(ada, first))).toEqual(INVALID);
    expect((await verify(ada, second)).status).toBe(200);
    expect((await resend(ada)).body).toEqual({ ok: true });
    expect(await sendWaitingMails(database.db)).toEqual([]);
    expect((await resend(undefined)).status).toBe(401);
  });

  test('is good for a day, and sets no password', async () => {
    const ada = await unverified();
    await resend(ada);
    const token = tokenIn(await mailTo(ada.email, 'verify-email'));
    const [row] = await owner(
      `SELECT extract(epoch FROM expires_at - now())::float8 / 3600 AS hours
         FROM mail_tokens WHERE user_id = '${ada.id}'`,
    );
    expect(row?.hours).toBeCloseTo(24, 0);
    expect(told(await reset(token))).toEqual(INVALID);
    await owner(`UPDATE mail_tokens SET expires_at = now() WHERE user_id = '${ada.id}'`);
    expect(told(await verify(ada, token))).toEqual(INVALID);
  });

  test('of 50 at once, in two processes, one wins', attack, async () => {
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
  test('is answered alike whether or not the address has an account', attack, async () => {
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
  });

  test('is set anew by the link: all sessions end, the owner is told, keys stay', async () => {
    const ada = await verified();
    await ask(ada, 'POST', '/api/keys', { body: { name: 'of ada' } });
    const token = await resetTokenFor(ada.email);
    const password = `new ${randomUUID()}`;
    const done = await reset(token, password);
    expect([done.status, done.body]).toEqual([200, { ok: true }]);
    expect(done.headers.get('set-cookie')).toBeNull();
    expect((await ask(ada, 'GET', '/api/settings')).status).toBe(401);
    const again = { ...ada, cookie: (await signIn(ada.email, password)) ?? '' };
    expect((await ask(again, 'GET', '/api/keys')).body.keys).toHaveLength(1);
    const notice = await mailTo(ada.email, 'password-was-reset');
    expect(notice.text).not.toMatch(/token|http/);
    expect(told(await reset(token))).toEqual(INVALID);
  });

  test('keeps its link when the new one cannot be one', async () => {
    const { email } = await verified();
    const token = await resetTokenFor(email);
    expect((await reset(token, 'short')).status).toBe(400);
    const common = await reset(token, 'password1');
    expect(told(common)).toEqual([400, 'Password is too common']);
    const own = await reset(token, email.toUpperCase());
    expect(told(own)).toEqual([400, 'Password must not be your address']);
    expect((await reset(token)).status).toBe(200);
  });

  test(
    'is not set by an older link, one of an hour ago, or one that verifies',
    attack,
    async () => {
      const ada = await verified();
      const older = await resetTokenFor(ada.email);
      const token = await resetTokenFor(ada.email);
      expect(told(await reset(older))).toEqual(INVALID);
      expect(told(await verify(ada, token))).toEqual(INVALID);
      const [row] = await owner(
        `SELECT extract(epoch FROM expires_at - now())::float8 / 60 AS minutes
         FROM mail_tokens WHERE user_id = '${ada.id}'`,
      );
      expect(row?.minutes).toBeGreaterThan(50);
      expect(row?.minutes).toBeLessThanOrEqual(60);
      await owner(`UPDATE mail_tokens SET expires_at = now() WHERE user_id = '${ada.id}'`);
      expect(told(await reset(token))).toEqual(INVALID);
      for (const none of ['x', 'x'.repeat(43), '../../etc/passwd']) {
        expect(told(await reset(none))).toEqual(INVALID);
      }
      const [user] = await owner(`SELECT password_hash FROM users WHERE id = '${ada.id}'`);
      expect(user).toEqual({ password_hash: passwordHash });
    },
  );

  test('of many links used at once is set by one', attack, async () => {
    const { email } = await verified();
    const token = await resetTokenFor(email);
    const passwords = Array.from({ length: 3 }, () => `new ${randomUUID()}`);
    const answers = await Promise.all(passwords.map((password) => reset(token, password)));
    const statuses = answers.map(({ status }) => status);
    expect([...statuses].sort()).toEqual([200, ...Array<number>(2).fill(400)]);
    expect(await signIn(email, passwords[statuses.indexOf(200)])).toBeDefined();
  });

  test('of a token that 50 take at once, in two processes, one gets it', attack, async () => {
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

  test('waits with its link untouched for whoever changes the account', async () => {
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
      // Two that lock both, each in another order, would wait for each other.
      await db.query('SELECT FROM mail_tokens WHERE user_id = $userId FOR UPDATE NOWAIT', {
        userId,
      });
    });
    expect(await taking).toEqual({ userId, email });
  });

  test(
    'of a squatter’s account gives it to the owner, without what was planted',
    attack,
    async () => {
      const squatter = await unverified();
      await ask(squatter, 'POST', '/api/keys', { body: { name: 'planted' } });
      const bring = async (body?: object) =>
        (await ask(squatter, 'POST', '/api/wallet/walletprov', { body })).body.address;
      // What is paid to the first could be moved by whoever brought its key.
      await bring({ privateKey: generatePrivateKey() });
      const made = await bring();
      await change(squatter, { email: newEmail() });
      await owner(
        `INSERT INTO identities (id, user_id, kind, issuer, subject, label, created_at)
       VALUES ('${randomUUID()}', '${squatter.id}', 'github', 'host', '${randomUUID()}', 'x', now());
       INSERT INTO sign_in_hosts (user_id, host, last_at) VALUES ('${squatter.id}', 'theirs', now())`,
      );
      expect((await reset(await resetTokenFor(squatter.email))).status).toBe(200);
      const ada = { ...squatter, cookie: await newSession(squatter.id) };
      expect(await settingsOf(ada)).toMatchObject({ emailVerified: true, pendingEmail: null });
      expect((await ask(ada, 'GET', '/api/keys')).body.keys).toEqual([]);
      const left = ['identities', 'api_keys', 'mail_tokens', 'sign_in_hosts'].map((table) =>
        owner(`SELECT FROM ${table} WHERE user_id = '${squatter.id}'`),
      );
      expect((await Promise.all(left)).flat()).toEqual([]);
      const { body } = await ask(ada, 'GET', '/api/wallet/address');
      expect(body).toEqual({ authenticated: true, address: made });
      expect((await ask(squatter, 'GET', '/api/settings')).status).toBe(401);
    },
  );

  test('of an account without one gives it one', async () => {
    const ada = await verified();
    await owner(`UPDATE users SET password_hash = NULL WHERE id = '${ada.id}'`);
    expect(await settingsOf(ada)).toMatchObject({ hasPassword: false });
    expect((await reset(await resetTokenFor(ada.email))).status).toBe(200);
    expect(await settingsOf({ ...ada, cookie: await newSession(ada.id) })).toMatchObject({
      hasPassword: true,
    });
  });

  test(
    'has no link into a mailbox that was taken over, until it is its owner’s',
    attack,
    async () => {
      const ada = await verified();
      const early = await resetTokenFor(ada.email);
      await stopResets(ada.email, true);
      expect((await forgot(ada.email)).status).toBe(200);
      expect(await sendWaitingMails(database.db)).toEqual([]);
      expect(told(await reset(early))).toEqual(INVALID);
      // One that was being sent when it was told.
      const late = await database.db
        .asPlatform()
        .transaction((db) =>
          makeMailToken(db, 'reset-password', { userId: ada.id, email: ada.email }),
        );
      expect(told(await reset(late))).toEqual(INVALID);
      await stopResets(ada.email, false);
      expect((await reset(await resetTokenFor(ada.email))).status).toBe(200);
    },
  );

  test(
    'of an account that is being deleted is nobody’s: no link, and none from before',
    attack,
    async () => {
      const ada = await verified();
      const early = await resetTokenFor(ada.email);
      const options = { body: { confirm: ada.email } };
      expect((await ask(ada, 'DELETE', '/api/settings', options)).status).toBe(202);
      expect(told(await reset(early))).toEqual(INVALID);
      expect((await forgot(ada.email)).status).toBe(200);
      expect(await sendWaitingMails(database.db)).toEqual([]);
      const [user] = await owner(`SELECT password_hash FROM users WHERE id = '${ada.id}'`);
      expect(user).toEqual({ password_hash: passwordHash });
    },
  );

  test('of a wallet or of the built-in user is nobody’s mail', attack, async () => {
    const ada = await unverified();
    const address = `0x${randomUUID().replaceAll('-', '')}@wallet.service`;
    await owner(`UPDATE users SET email = '${address}' WHERE id = '${ada.id}'`);
    await sendWaitingMails(database.db);
    expect((await forgot(address)).status).toBe(200);
    expect((await forgot('operator@platform.invalid')).status).toBe(200);
    expect((await resend(ada)).status).toBe(200);
    expect(await sendWaitingMails(database.db)).toEqual([]);
  });
});

describe('an account without a password', () => {
  const setFirst = (person: Person, body: unknown) =>
    ask(person, 'POST', '/api/settings/password', { body });

  test('gets one from whoever has just signed in, once', async () => {
    const ada = await verified();
    const newPassword = `new ${randomUUID()}`;
    const had = await setFirst(ada, { newPassword });
    expect(told(had)).toEqual([400, 'currentPassword is required']);
    await owner(`UPDATE users SET password_hash = NULL WHERE id = '${ada.id}'`);
    const guessed = await setFirst(ada, { currentPassword: 'x', newPassword });
    expect(told(guessed)).toEqual([403, 'Current password is incorrect']);
    const set = await setFirst(ada, { newPassword });
    expect([set.status, set.body]).toEqual([200, { success: true }]);
    const cookie = set.headers.get('set-cookie')?.split(';')[0] ?? '';
    expect(await settingsOf({ ...ada, cookie })).toMatchObject({ hasPassword: true });
    expect((await ask(ada, 'GET', '/api/settings')).status).toBe(401);
  });

  test('gets none from whoever has an old session', attack, async () => {
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
  test('is what its owner sees of the account', async () => {
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
          credits: 200,
          createdAt: expect.any(String),
        },
      },
    ]);
    expect((await ask(undefined, 'GET', '/api/settings')).status).toBe(401);
  });

  test.each(['POST', 'PATCH'])('takes another name by %s, and nothing else', async (method) => {
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
    const wallet = await ask(ada, method, '/api/settings', { body: { email: 'x@wallet.service' } });
    expect(told(wallet)).toEqual([400, 'Invalid email']);
  });

  test('has another address once that is confirmed; the former one is told', async () => {
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
    // Whoever reads the former mailbox has no way in any more.
    expect(told(await reset(early))).toEqual(INVALID);
    await forgot(ada.email);
    expect(await sendWaitingMails(database.db)).toEqual([]);
    // Nor does one come back with the former address.
    await owner(`UPDATE users SET email = '${ada.email}' WHERE id = '${ada.id}'`);
    expect(told(await reset(early))).toEqual(INVALID);
    await owner(`UPDATE users SET email = '${email}' WHERE id = '${ada.id}'`);
    // One that was being sent there meanwhile is of no use either.
    const late = await database.db
      .asPlatform()
      .transaction((db) =>
        makeMailToken(db, 'reset-password', { userId: ada.id, email: ada.email }),
      );
    expect(told(await reset(late))).toEqual(INVALID);
  });

  test('of two that ask for one is had by whose link it is', attack, async () => {
    const [ada, mallory, email] = [await verified(), await verified(), newEmail()];
    await change(mallory, { email });
    await sendWaitingMails(database.db);
    await change(ada, { email });
    const token = tokenIn(await mailTo(email, 'change-email'));
    expect(told(await verify(mallory, token))).toEqual(INVALID);
    expect(await settingsOf(mallory)).toMatchObject({ email: mallory.email });
    expect((await verify(ada, token)).body).toEqual({ ok: true, email });
  });

  test('takes back what is not confirmed yet', async () => {
    const ada = await verified();
    const email = newEmail();
    await change(ada, { email });
    const token = tokenIn(await mailTo(email, 'change-email'));
    await resend(ada);
    const again = tokenIn(await mailTo(email, 'change-email'));
    expect(told(await verify(ada, token))).toEqual(INVALID);
    const back = await change(ada, { email: ada.email });
    expect(back.body.user).toMatchObject({ email: ada.email, pendingEmail: null });
    expect(told(await verify(ada, again))).toEqual(INVALID);
  });

  test('with the address of another looks the same, and gets no link', attack, async () => {
    const [ada, bob] = [await verified(), await verified()];
    const free = await change(ada, { email: newEmail() });
    const taken = await change(ada, { email: bob.email });
    const mask = ({ text }: Answer) => text.replace(/"pendingEmail":"[^"]*"/, '');
    expect([taken.status, mask(taken)]).toEqual([free.status, mask(free)]);
    const mails = await sendWaitingMails(database.db);
    expect(mails.filter(({ to }) => to === bob.email)).toEqual([]);
    expect(mails.filter(({ to }) => to === ada.email)).toHaveLength(2);
  });

  test('does not get an address that another has got meanwhile', attack, async () => {
    const ada = await verified();
    const email = newEmail();
    await change(ada, { email });
    const token = tokenIn(await mailTo(email, 'change-email'));
    const bob = await unverified(email);
    expect(told(await verify(ada, token))).toEqual(INVALID);
    expect(await settingsOf(ada)).toMatchObject({ email: ada.email });
    expect(await settingsOf(bob)).toMatchObject({ email, emailVerified: false });
  });

  test('keeps its address from whoever has an old session', attack, async () => {
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

describe('bounds', () => {
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
  ])('an address asks %s %s %i times a minute', attack, async (method, path, times) => {
    const { headers } = await ask(undefined, method, path, method === 'GET' ? {} : { body: {} });
    expect(headers.get('ratelimit-limit')).toBe(String(times));
  });

  test('who asks again while a link waits to be sent gets one', async () => {
    const { email } = await verified();
    const asked = await Promise.all(Array.from({ length: 8 }, () => forgot(email)));
    expect(new Set(asked.map(({ status, text }) => `${status} ${text}`)).size).toBe(1);
    const [mail, ...more] = await sendWaitingMails(database.db);
    expect(more).toEqual([]);
    expect((await reset(mail ? tokenIn(mail) : '')).status).toBe(200);
    await sendWaitingMails(database.db);
    // One that was given up a day ago does not wait.
    await forgot(email);
    await owner(
      `UPDATE mails SET requested_at = now() - interval '25 hours' WHERE address = '${email}'`,
    );
    await forgot(email);
    expect(await sendWaitingMails(database.db)).toHaveLength(2);
  });

  test('who asks in the same moment waits for the first, and gets the one link', async () => {
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

  test('five mails of a kind an hour go to an address, and nobody is told', attack, async () => {
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
  });

  test(
    'what is asked for of one address is bounded, and so is what it asks for',
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
  test('nothing is promised that needs one, and all else goes on', async () => {
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
      expect(told(await there('/api/auth/forgot-password', { email: ada.email }))).toEqual(
        unavailable,
      );
      expect(told(await there('/api/auth/verify-email/resend', undefined, asAda))).toEqual(
        unavailable,
      );
      expect(told(await there('/api/settings', { email: newEmail() }, asAda))).toEqual(unavailable);
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
