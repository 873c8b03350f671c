import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { SESSION_COOKIE } from '../../../api/auth/session-cookie.js';
import type { Listening } from '../../../api/http/server.js';
import { createWeb } from '../../../api/web/web.js';
import { accountCleanups } from '../../../src/account-lifecycle/account-cleanups.js';
import {
  AccountDeletions,
  CleanupPendingError,
} from '../../../src/accounts/accounts/account-deletions.js';
import {
  refreshTokenContext,
  type TokenRevoker,
} from '../../../src/accounts/accounts/identities.js';
import type { TenantDatabase } from '../../../src/platform/database/database.js';
import { MediaFiles } from '../../../src/videos/media-files.js';
import { UnavailableError } from '../../../src/lib/errors.js';
import { addSession, createSession } from '../../../src/accounts/accounts/sessions.js';
import { UserHeartbeats } from '../../../src/agents/heartbeat/user-heartbeats.js';
import {
  creditReferral,
  REFERRAL_AMOUNT,
} from '../../../src/accounts/accounts/referral-credits.js';
import {
  balanceOf,
  creditsOf,
  grantedOf,
  spentOf,
  transfer,
  type Account,
} from '../../../src/money/ledger/ledger.js';
import { shownAddress } from '../../../src/money/chain/address.js';
import { formatAmount } from '../../../src/types/money.js';
import { messageContext, threadContext } from '../../../src/bus/sealed-contexts.js';
import { queryRows } from '../../platform/database/catalog.js';
import { insertSql, ROWS } from '../../platform/database/rows.js';
import { leaveTraces, tracesOf, type Person } from '../../platform/database/traces.js';
import { giveCredits, grantCredits } from '../../gateway/support.js';
import { databaseAlone } from '../../support/dependencies.js';
import { call, type Answer, type CallOptions } from '../../support/http.js';
import { testDatabase, type TestDatabase } from '../../support/postgres.js';

const PASSWORD = 'a-password-of-hers';
const PLACE = { address: '192.0.2.1', requestId: 'a-request', userAgent: undefined };
const attack = { tags: 'attack' };

let database: TestDatabase;
let alone: Awaited<ReturnType<typeof databaseAlone>>;
let web: Listening;
let ada: Somebody;

interface Somebody extends Person {
  readonly cookie: string;
}

const owner = <Row extends object>(sql: string) => queryRows<Row>(database.ownerUrl, sql);

beforeAll(async () => {
  database = await testDatabase();
  alone = await databaseAlone(database, undefined, { TRUSTED_PROXIES: '127.0.0.1' });
  web = await createWeb(alone.dependencies).listen('127.0.0.1', 0);
});
afterAll(async () => {
  await web?.close();
  await alone?.close();
  await database?.close();
});
beforeEach(async () => {
  ada = await somebody();
});

const ask = (
  { cookie }: Pick<Somebody, 'cookie'>,
  method: string,
  path: string,
  { headers, ...options }: CallOptions = {},
): Promise<Answer> => call(web.url, method, path, { ...options, headers: { cookie, ...headers } });

const nobody = { cookie: '' };

const login = (email: string) =>
  ask(nobody, 'POST', '/api/auth/login', { body: { email, password: PASSWORD } });
const cookieOf = (answer: Answer) => answer.headers.get('set-cookie')?.split(';')[0] ?? '';

/** Creates a user with a browser session. */
async function somebody(): Promise<Somebody> {
  const id = randomUUID();
  const person = { id, email: `${id}@example.com`, name: `Ada ${randomUUID()}` };
  const { token } = await database.db.asPlatform().transaction(async (db) => {
    const referralCode = id.toUpperCase();
    await db.User.create({ ...person, referralCode });
    return addSession(db, id, 'password', PLACE);
  });
  return { ...person, cookie: `${SESSION_COOKIE}=${token}` };
}

/** Creates a user by registration and password sign-in, which takes longer. */
async function withPassword(): Promise<Somebody> {
  const [email, name] = [`${randomUUID()}@example.com`, `Ada ${randomUUID()}`];
  const { body } = await register(email, name);
  return { id: body.id, email, name, cookie: cookieOf(await login(email)) };
}

const register = (email: string, name = email) =>
  ask(nobody, 'POST', '/api/register', { body: { email, name, password: PASSWORD } });

const leave = ({ cookie, email: confirm }: Somebody) =>
  ask({ cookie }, 'DELETE', '/api/settings', { body: { confirm } });

/** A fake that completes the removal of an agent at once, or never. */
class Removals {
  readonly asked: string[] = [];
  isOut = false;

  remove = async ({ tenant }: { readonly tenant: TenantDatabase }, id: string) => {
    this.asked.push(id);
    await tenant.transaction(async (db) => {
      const deletedAt = this.isOut ? null : new Date();
      await db.Agent.update({ desired: 'deleted', deletedAt }, { where: { id } });
      if (!this.isOut)
        await db.Operation.update(
          { status: 'succeeded', finishedAt: new Date() },
          { where: { agentId: id } },
        );
    });
    return undefined;
  };
}

/** Fakes an identity provider that records the tokens to revoke. */
function revoker(answer: () => Promise<void> = () => Promise.resolve()) {
  const reported: string[] = [];
  const revoke = (token: string) => {
    reported.push(token);
    return answer();
  };
  return { reported, revoke };
}

/** The area of subscriptions without a payment processor: `test/billing/leaving.test.ts` has one. */
const planEndings = { endAll: () => Promise.resolve(0) };

const deletions = (removals = new Removals(), identityProvider: TokenRevoker = revoker()) => {
  const { secrets, log } = alone.dependencies;
  const media = new MediaFiles('/nowhere');
  const shared = { database: database.db, secrets, log, media };
  const parts = {
    ...shared,
    operations: removals,
    planEndings,
    identityProvider,
    icecast: undefined,
  };
  return new AccountDeletions(database.db, accountCleanups(parts));
};

/** Marks the schedules of heartbeats and tasks as up to date, as a worker does. */
async function follow(): Promise<void> {
  await owner('UPDATE heartbeats SET scheduled = true');
  await owner('DELETE FROM scheduled_tasks WHERE removed_at IS NOT NULL');
}

/** Runs the deletion of an account, as its workflow does. */
async function deleted({ id }: Somebody, by = deletions()): Promise<void> {
  for (const area of by.areas) {
    try {
      await by.leave(area, id);
    } catch (error) {
      if (!(error instanceof CleanupPendingError)) throw error;
      await follow();
      await by.leave(area, id);
    }
  }
  await by.erase(id);
}

describe('deletion of an account', () => {
  test('closes the account at once: no sign-in, no session, no API key', async () => {
    ada = await withPassword();
    const other = cookieOf(await login(ada.email));
    const made = await ask(ada, 'POST', '/api/keys', { body: { name: 'ci' } });
    expect(made.status).toBe(201);
    const answer = await leave(ada);
    expect([answer.status, answer.body]).toEqual([202, { status: 'deleting' }]);
    expect(answer.headers.get('set-cookie')).toMatch(/^service-session=; .*Max-Age=0/);

    for (const cookie of [ada.cookie, other]) {
      expect((await ask({ cookie }, 'GET', '/api/keys')).status).toBe(401);
    }
    const refused = await login(ada.email);
    expect([refused.status, refused.body]).toEqual([401, { error: 'Invalid email or password' }]);
    expect(await owner(`SELECT * FROM api_keys WHERE user_id = '${ada.id}'`)).toEqual([]);
    // The address stays reserved until the deletion has finished.
    expect((await register(ada.email)).status).toBe(409);
  });

  test("requires the account's address as confirmation, in upper or lower case", async () => {
    for (const confirm of ['', 'yes', `x${ada.email}`]) {
      const { status } = await ask(ada, 'DELETE', '/api/settings', { body: { confirm } });
      expect(status).toBe(400);
    }
    expect((await ask(ada, 'GET', '/api/keys')).status).toBe(200);
    expect((await leave({ ...ada, email: ada.email.toUpperCase() })).status).toBe(202);
  });

  test('an account is deleted once for any number of concurrent requests', async () => {
    const statuses = await Promise.all(Array.from({ length: 5 }, () => leave(ada)));
    expect(statuses.map(({ status }) => status)).toContain(202);
    expect(await owner(`SELECT * FROM account_deletions WHERE user_id = '${ada.id}'`)).toHaveLength(
      1,
    );
    const by = deletions();
    await Promise.all([deleted(ada, by), deleted(ada, by)]);
    await deleted(ada, by);
    expect(await tracesOf(database.db, ada)).toEqual([]);
  });

  test('leaves no row of the deleted account in any table', async () => {
    await leaveTraces(database.ownerUrl, ada);
    await ask(nobody, 'POST', '/api/auth/login', {
      body: { email: ada.email, password: 'a guess' },
    });
    await alone.dependencies.refusals.flush();
    const before = await tracesOf(database.db, ada);
    expect(before.some((trace) => trace.startsWith('audit_log'))).toBe(true);
    expect((await leave(ada)).status).toBe(202);
    await deleted(ada);
    expect(await tracesOf(database.db, ada)).toEqual([]);
  });

  test('keeps records of usage, credits and actions, and frees the address', async () => {
    await leaveTraces(database.ownerUrl, ada);
    await leave(ada);
    await deleted(ada);
    for (const table of ['usage_logs', 'usage_daily', 'ledger_transfers', 'audit_log']) {
      const kept = await owner(`SELECT * FROM ${table} WHERE user_id = '${ada.id}'`);
      expect([table, kept.length > 0]).toEqual([table, true]);
    }
    const registered = await register(ada.email);
    expect(registered.status).toBe(200);
    expect(registered.body.id).not.toBe(ada.id);
  });

  test('deleting an account changes no other account, not even credits for having referred it', async () => {
    const bob = await somebody();
    const credits = {
      amount: 100n,
      currency: 'usd',
      cause: `referral:${bob.id}:${ada.id}`,
    } as const;
    await transfer(database.db.asPlatform(), {
      ...credits,
      debit: 'referrals',
      credit: creditsOf(bob.id),
    });
    await leaveTraces(database.ownerUrl, bob);
    const before = await tracesOf(database.db, bob);
    const had = await balanceOf(database.db.asUser(bob.id), creditsOf(bob.id), 'usd');
    await leaveTraces(database.ownerUrl, ada);
    await leave(ada);
    await deleted(ada);
    expect((await tracesOf(database.db, bob)).sort()).toEqual(before.sort());
    expect(had.balance).toBeGreaterThanOrEqual(100n);
    expect(await balanceOf(database.db.asUser(bob.id), creditsOf(bob.id), 'usd')).toEqual(had);
    expect((await ask(bob, 'GET', '/api/keys')).status).toBe(200);
  });

  test('deleting an account that was never verified revokes the credits of its referral', async () => {
    const bob = await somebody();
    const bounds = { creditsGrantedADay: 1_000_000_000n };
    await database.db
      .asPlatform()
      .transaction((db) => creditReferral(db, { userId: ada.id, referrerId: bob.id }, bounds));
    const credits = () => balanceOf(database.db.asUser(bob.id), grantedOf(bob.id), 'usd');
    expect((await credits()).balance).toBe(REFERRAL_AMOUNT);
    await leave(ada);
    await deleted(ada);
    expect(await credits()).toEqual({ balance: 0n, held: 0n });
  });

  test('waits until all agents of the account are removed, and requests each removal once', async () => {
    await leaveTraces(database.ownerUrl, ada);
    await leave(ada);
    const removals = new Removals();
    removals.isOut = true;
    const by = deletions(removals);
    for (const _ of [1, 2, 3]) {
      await expect(by.leave('agents', ada.id)).rejects.toThrow('1 agents are being removed');
    }
    expect(removals.asked).toEqual([`${ada.id}-agent-1`]);
    await expect(by.erase(ada.id)).rejects.toThrow('agents of the account are still there');
    expect((await owner(`SELECT * FROM users WHERE id = '${ada.id}'`)).length).toBe(1);
  });

  test('waits for a running operation of an agent that is already removed', async () => {
    await leaveTraces(database.ownerUrl, ada);
    await leave(ada);
    const of = `agent_id IN (SELECT id FROM agents WHERE user_id = '${ada.id}')`;
    await owner(
      `UPDATE agents SET deleted_at = now(), desired = 'deleted' WHERE user_id = '${ada.id}'`,
    );
    const by = deletions(new Removals());
    await expect(by.leave('agents', ada.id)).rejects.toThrow('1 agents are being removed');
    await owner(`UPDATE operations SET status = 'succeeded', finished_at = now() WHERE ${of}`);
    await by.leave('agents', ada.id);
  });

  test("removes the heartbeat's schedule before it deletes the account", async () => {
    const by = {
      tenant: database.db.asUser(ada.id),
      actor: ada.id,
      requestId: 'r',
      idempotencyId: 'i',
    };
    await new UserHeartbeats(database.db).set(by, { enabled: true });
    await follow();
    await leave(ada);
    for (const _ of [1, 2]) {
      await expect(deletions().leave('heartbeats', ada.id)).rejects.toThrow(CleanupPendingError);
    }
    expect(
      await owner(`SELECT enabled, scheduled FROM heartbeats WHERE user_id = '${ada.id}'`),
    ).toEqual([{ enabled: false, scheduled: false }]);
    await follow();
    await deletions().leave('heartbeats', ada.id);
  });

  test('removes the schedules of tasks before it deletes the account', async () => {
    await owner(insertSql('agents', ROWS.agents?.(ada.id, 1) ?? {}));
    await owner(insertSql('scheduled_tasks', ROWS.scheduled_tasks?.(ada.id, 1) ?? {}));
    await leave(ada);
    for (const _ of [1, 2]) {
      await expect(deletions().leave('scheduled tasks', ada.id)).rejects.toThrow(
        CleanupPendingError,
      );
    }
    expect(
      await owner(
        `SELECT scheduled FROM scheduled_tasks
          WHERE user_id = '${ada.id}' AND removed_at IS NOT NULL`,
      ),
    ).toEqual([{ scheduled: false }]);
    await follow();
    await deletions().leave('scheduled tasks', ada.id);
  });

  /** Links the account to an identity whose refresh token is stored. */
  async function linkedWithToken(): Promise<void> {
    const { secrets } = alone.dependencies;
    const id = randomUUID();
    await database.db.asUser(ada.id).transaction((db) =>
      db.Identity.create({
        id,
        userId: ada.id,
        kind: 'google',
        issuer: 'https://idp.example',
        subject: id,
        label: ada.email,
        refreshToken: secrets.seal('of hers', refreshTokenContext(id)),
      }),
    );
  }

  test('revokes each refresh token of the account at the identity provider once', async () => {
    await linkedWithToken();
    await leave(ada);
    const provider = revoker();
    const by = deletions(new Removals(), provider);
    await by.leave('refresh tokens', ada.id);
    await by.leave('refresh tokens', ada.id);
    expect(provider.reported).toEqual(['of hers']);
  });

  test('waits up to a day for an identity provider that does not answer', async () => {
    await linkedWithToken();
    await leave(ada);
    const away = revoker(() => Promise.reject(new UnavailableError('away')));
    const by = deletions(new Removals(), away);
    await expect(by.leave('refresh tokens', ada.id)).rejects.toThrow(CleanupPendingError);
    await owner(
      `UPDATE account_deletions SET requested_at = requested_at - interval '1 day'
        WHERE user_id = '${ada.id}'`,
    );
    await by.leave('refresh tokens', ada.id);
    expect(away.reported).toEqual(['of hers', 'of hers']);
  });

  test('erases a large account in batches', async () => {
    await leaveTraces(database.ownerUrl, ada);
    await owner(
      `INSERT INTO messages (id, agent_id, user_id, conversation, role, content, created_at)
       SELECT gen_random_uuid(), '${ada.id}-agent-1', '${ada.id}', 'c', 'user', 'x', now()
         FROM generate_series(1, 2500)`,
    );
    await leave(ada);
    await deletions().leave('agents', ada.id);
    const erase = async () =>
      (await owner<{ done: number }>(`SELECT erase_account('${ada.id}', 1000) AS done`))[0]?.done;
    expect([await erase(), await erase(), await erase()]).toEqual([1000, 1000, 501]);
    await deleted(ada);
    expect(await tracesOf(database.db, ada)).toEqual([]);
  });

  test("revokes the tokens of the account's linked Farcaster account", async () => {
    const fid = Math.floor(Math.random() * 2 ** 40);
    const linked = { ...ROWS.identities?.(ada.id, 1), kind: 'farcaster', subject: String(fid) };
    await owner(insertSql('identities', linked));
    for (const n of [fid, fid + 1]) {
      const token = { ...ROWS.farcaster_tokens?.(ada.id, 1), id: `token-${n}`, fid: n };
      await owner(insertSql('farcaster_tokens', token));
    }
    await leave(ada);
    await deleted(ada);
    const left = `SELECT fid::text FROM farcaster_tokens WHERE fid IN (${fid}, ${fid + 1})`;
    expect(await owner(left)).toEqual([{ fid: String(fid + 1) }]);
  });

  test('erases no account whose owner has not requested it', attack, async () => {
    await leaveTraces(database.ownerUrl, ada);
    const before = await tracesOf(database.db, ada);
    await deleted(ada);
    expect(await tracesOf(database.db, ada)).toEqual(before);
  });

  test(
    "opens no session for a sign-in concurrent with the account's deletion",
    attack,
    async () => {
      await owner(insertSql('identities', ROWS.identities?.(ada.id, 1) ?? {}));
      const user = { id: ada.id, name: ada.name, email: ada.email, isAdmin: false };
      const [identity] = await owner<{ id: string }>(
        `SELECT id FROM identities WHERE user_id = '${ada.id}'`,
      );
      const proof = { user, method: 'google', identityId: identity?.id ?? '' } as const;
      const signIn = () => createSession(database.db, proof, PLACE);
      const opened = [signIn(), signIn(), signIn(), leave(ada), signIn(), signIn(), signIn()];
      await Promise.all(opened);
      expect(await signIn()).toBeUndefined();
      expect(await owner(`SELECT * FROM sessions WHERE user_id = '${ada.id}'`)).toEqual([]);
      expect(
        await owner(`SELECT * FROM account_deletions WHERE user_id = '${ada.id}'`),
      ).toHaveLength(1);
    },
  );

  test.each(['sessions', 'api_keys', 'provider_keys', 'agents', 'identities', 'mail_tokens'])(
    'refuses a new row of %s for a deleted account, as if the account did not exist',
    attack,
    async (table) => {
      await leave(ada);
      const row = insertSql(table, ROWS[table]?.(ada.id, 1) ?? {});
      await expect(owner(row)).rejects.toMatchObject({ constraint: 'account_is_there' });
    },
  );

  test(
    "deleting an account requires a recent session and the platform's own origin",
    attack,
    async () => {
      const options = {
        body: { confirm: ada.email },
        headers: { origin: 'https://elsewhere.example' },
      };
      expect((await ask(ada, 'DELETE', '/api/settings', options)).status).toBe(403);
      await owner(
        `UPDATE sessions SET created_at = now() - interval '1 day' WHERE user_id = '${ada.id}'`,
      );
      const { status, body } = await leave(ada);
      expect([status, body.code]).toEqual([403, 'REAUTHENTICATION_REQUIRED']);
      expect((await ask(ada, 'GET', '/api/settings/export')).status).toBe(403);
      expect(await owner(`SELECT * FROM account_deletions WHERE user_id = '${ada.id}'`)).toEqual(
        [],
      );
    },
  );
});

describe('the audit log and a deleted account', () => {
  test(
    'the audit log lets erasure remove subjects of failed sign-ins and emails of payments, and refuses all other changes',
    attack,
    async () => {
      await owner(insertSql('audit_log', { actor: 'a', action: 'sign-in.failed', subject: 'x' }));
      await owner(insertSql('audit_log', { actor: 'a', action: 'agent.delete', subject: 'x' }));
      for (const action of ['x402.pay', 'x402.outcome']) {
        const detail = JSON.stringify({ email: ada.email, amount: '1.000000' });
        await owner(insertSql('audit_log', { actor: 'a', action, subject: 'x', detail }));
      }
      for (const change of [
        `SET subject = 'another' WHERE action = 'sign-in.failed'`,
        `SET subject = '(erased)', actor = 'b' WHERE action = 'sign-in.failed'`,
        `SET subject = '(erased)' WHERE action = 'agent.delete'`,
        `SET detail = '{}' WHERE action = 'x402.pay'`,
        `SET detail = detail - 'email', actor = 'b' WHERE action = 'x402.pay'`,
        `SET detail = detail - 'email' WHERE action = 'x402.outcome'`,
      ]) {
        await expect(owner(`UPDATE audit_log ${change}`)).rejects.toMatchObject({ code: '42501' });
      }
      await owner(`UPDATE audit_log SET subject = '(erased)' WHERE action = 'sign-in.failed'`);
      await owner(`UPDATE audit_log SET detail = detail - 'email' WHERE action = 'x402.pay'`);
    },
  );
});

describe('the export of an account', () => {
  const exported = () => ask(ada, 'GET', '/api/settings/export');

  /** Leaves rows in all tables, with texts of the bus that the export can open. */
  async function leaveReadableTraces(person: Person): Promise<void> {
    await leaveTraces(database.ownerUrl, person);
    const { secrets } = alone.dependencies;
    const of = `= '${person.id}'`;
    const messages = await owner<{ id: string; from: string; messageId: string }>(
      `SELECT id, from_agent AS "from", message_id AS "messageId" FROM bus_messages
        WHERE from_user ${of}`,
    );
    for (const { from, id, messageId } of messages) {
      const sealed = secrets.seal('{"payload":{}}', messageContext(from, messageId));
      await owner(`UPDATE bus_messages SET sealed = '${sealed}' WHERE id = ${id}`);
    }
    const threads = await owner<{ a: string; b: string; booking: string }>(
      `SELECT agent_a AS a, agent_b AS b, booking_id AS booking FROM bus_threads
        WHERE user_a ${of}`,
    );
    for (const { a, b, booking } of threads) {
      const sealed = secrets.seal('{}', threadContext(a, b, booking));
      await owner(
        `UPDATE bus_threads SET sealed_terms = '${sealed}' WHERE booking_id = '${booking}'`,
      );
    }
  }

  test("the export of an account is a JSON file with all the account's data", async () => {
    await leaveReadableTraces(ada);
    await giveCredits(database.db, ada.id, 10_000n);
    const answer = await exported();
    expect(answer.status).toBe(200);
    expect(answer.headers.get('content-disposition')).toBe('attachment; filename="account.json"');
    expect(answer.headers.get('content-type')).toContain('application/json');
    const { body } = answer;
    expect(Object.keys(body)).toEqual([
      ...[
        'user',
        'identities',
        'unlinkedIdentities',
        'sessions',
        'keys',
        'providerKeys',
        'wallets',
        'agents',
        'messages',
        'usage',
        'verifications',
        'swarms',
        'radioStreams',
        'videos',
        'scheduledTasks',
        'scheduledTaskRuns',
        'emails',
        'skills',
        'installedSkills',
        'toolUsage',
      ],
      ...['usageByHour', 'samples', 'sampleSums', 'installations'],
      ...['busWebhooks', 'busMessages', 'busThreads', 'busAmplifications'],
      ...[
        'credits',
        'checkouts',
        'planCheckouts',
        'splits',
        'gas',
        'paymentSessions',
        'vouchers',
        'x402Payments',
      ],
      ...['events', 'subscription', 'subscriptions', 'activity'],
    ]);
    expect(body.user).toMatchObject({ id: ada.id, email: ada.email, name: ada.name });
    expect(body.user).not.toHaveProperty('passwordHash');
    for (const list of [
      'identities',
      'keys',
      'providerKeys',
      'wallets',
      'agents',
      'messages',
      'usage',
      'toolUsage',
      'usageByHour',
      'samples',
      'sampleSums',
      'installations',
      'busWebhooks',
      'busMessages',
      'busThreads',
      'busAmplifications',
      'credits',
      'checkouts',
      'planCheckouts',
      'splits',
      'gas',
      'paymentSessions',
      'x402Payments',
      'events',
    ]) {
      expect([list, body[list].length > 0]).toEqual([list, true]);
    }
    expect(body.sessions).toHaveLength(2);
    for (const { status } of body.agents) {
      expect(['provisioning', 'running', 'stopped', 'error']).toContain(status);
    }
    expect(body.credits).toEqual(
      expect.arrayContaining([
        { amount: '0.010000', reason: 'purchase', createdAt: expect.any(String) },
      ]),
    );
    expect(body.subscription).toMatchObject({ kind: 'plan', plan: 'solo' });
    expect(body.subscriptions).toEqual([body.subscription]);
    // Payouts have columns that are internal to the platform.
    const [{ payouts, ...split }] = body.splits;
    expect(payouts).toHaveLength(1);
    for (const name of ['userId', 'requestKey', 'dueAt', 'splitId', 'payment']) {
      for (const each of [split, ...payouts]) expect(each).not.toHaveProperty(name);
    }
    expect(body.activity.map(({ action }: { action: string }) => action)).toContain(
      'session.create',
    );
  });

  test('exports every address with its checksum', async () => {
    await leaveReadableTraces(ada);
    const wallet = '0x5aaeb6053f3e94c9b9a09f33669435e7ef1beaed';
    const unlinked = '0xfb6916095ca1df60bb79ce92ce3ea74c37c5d359';
    await owner(`UPDATE gas_reservations SET wallet = '${wallet}' WHERE user_id = '${ada.id}'`);
    await owner(
      `UPDATE unlinked_identities SET kind = 'wallet', subject = '${unlinked}', label = '${unlinked}'
        WHERE user_id = '${ada.id}'`,
    );
    const { body, text } = await exported();
    const shown = text.match(/\b0x[\da-fA-F]{40}\b/g) ?? [];
    expect(shown.filter((each) => each !== shownAddress(each))).toEqual([]);
    expect(body.gas[0].wallet).toBe(shownAddress(wallet));
    expect(body.unlinkedIdentities[0].subject).toBe(shownAddress(unlinked));
  });

  test('exports bought and granted credits in one list, without movements between them', async () => {
    const id = ada.id;
    await giveCredits(database.db, id, 20_000n);
    await grantCredits(database.db, id, 10_000n);
    const usd = { currency: 'usd', amount: 5_000n } as const;
    const platform = database.db.asPlatform();
    const paid = (debit: Account, cause: string) =>
      transfer(platform, { ...usd, debit, credit: spentOf(id), cause: `${cause}:${randomUUID()}` });
    await paid(creditsOf(id), 'gateway');
    await paid(grantedOf(id), 'gateway');
    const [debit, credit] = [creditsOf(id), grantedOf(id)];
    await transfer(platform, { ...usd, debit, credit, cause: `granted:${id}` });
    const { body } = await exported();
    const entries = body.credits.map(({ amount, reason }: Record<string, string>) => [
      reason,
      amount,
    ]);
    expect(entries).toEqual([
      ['purchase', '0.020000'],
      ['referral', '0.010000'],
      ['gateway', '-0.005000'],
      ['gateway', '-0.005000'],
    ]);
  });

  test("exports an account's rows page by page, each once and in order", async () => {
    await leaveReadableTraces(ada);
    const agentId = `${ada.id}-agent-1`;
    await owner(
      `INSERT INTO messages (id, agent_id, user_id, conversation, role, content, position, created_at)
       SELECT '${ada.id}-' || n, '${agentId}', '${ada.id}', 'c' || n % 3, 'user', n, n, now()
         FROM generate_series(1, 101) AS n`,
    );
    await owner(
      `INSERT INTO audit_log (actor, user_id, action, subject)
       SELECT 'x', '${ada.id}', 'many', n FROM generate_series(1, 450) AS n`,
    );
    await owner(
      `INSERT INTO usage_daily SELECT '${ada.id}', date '2025-01-01' + n, '', 'p', 'm', 1, 1, 1, 1
         FROM generate_series(1, 401) AS n`,
    );
    const { body } = await exported();
    type Message = { readonly conversation: string; readonly content: string };
    const contents = (body.messages as Message[]).filter(
      ({ conversation }) => conversation === 'c1',
    );
    expect(contents.map(({ content }) => Number(content))).toEqual(
      Array.from({ length: 34 }, (_, n) => 1 + 3 * n),
    );
    expect(body.messages).toHaveLength(102);
    type Line = { readonly action: string; readonly subject: string };
    const many = (body.activity as Line[]).filter(({ action }) => action === 'many');
    expect(many.map(({ subject }) => Number(subject))).toEqual(
      Array.from({ length: 450 }, (_, n) => n + 1),
    );
    const days = (body.usage as { readonly day: string; readonly model: string }[])
      .filter(({ model }) => model === 'm')
      .map(({ day }) => day);
    expect(new Set(days).size).toBe(401);
    expect(days).toHaveLength(401);
  });

  test(
    "exports each debit paid from the user's own payment sessions, and no other user's",
    attack,
    async () => {
      const bob = await somebody();
      for (const each of [ada, bob]) {
        await leaveReadableTraces(each);
        await owner(
          `INSERT INTO payment_vouchers (id, session_id, sequence, amount, cumulative, plugin, action)
         SELECT '${each.id}-' || n, s.id, n, 1000, 1000 * n, 'chain', 'transfers'
           FROM payment_sessions s, generate_series(1, 401) AS n WHERE s.user_id = '${each.id}'`,
        );
      }
      const { body } = await exported();
      const [session] = body.paymentSessions;
      expect(body.vouchers).toEqual(
        Array.from({ length: 401 }, (_, n) => ({
          paymentSessionId: session.id,
          id: `${ada.id}-${n + 1}`,
          sequence: n + 1,
          amount: '0.001000',
          cumulative: formatAmount(1_000n * BigInt(n + 1)),
          plugin: 'chain',
          action: 'transfers',
          createdAt: expect.any(String),
        })),
      );
    },
  );

  test('the export holds no secret, neither in the clear nor as stored', attack, async () => {
    ada = await withPassword();
    const { body: key } = await ask(ada, 'POST', '/api/keys', { body: { name: 'ci' } });
    await leaveReadableTraces(ada);
    await owner(
      `UPDATE agents SET config = '{"note": "n", "runtime": {"token": "of-a-channel-${ada.id}"}}'
        WHERE user_id = '${ada.id}'`,
    );
    await owner(
      `UPDATE identities SET refresh_token = 'sealed-${ada.id}' WHERE user_id = '${ada.id}'`,
    );
    await owner(`UPDATE wallets SET sealed_key = 'key-of-${ada.id}' WHERE user_id = '${ada.id}'`);
    const columns = await owner<{ table: string; column: string; owner: string }>(
      `SELECT table_name AS table, column_name AS column FROM information_schema.columns c
        WHERE table_schema = 'public' AND column_name ~ '(hash|token|sealed|sealed_key|secret)$'
          AND EXISTS (SELECT FROM information_schema.columns o WHERE o.table_schema = 'public'
                        AND o.table_name = c.table_name AND o.column_name = 'user_id')`,
    );
    const stored: string[] = [];
    for (const { table, column } of columns) {
      const rows = await owner<{ secret: string }>(
        `SELECT ${column}::text AS secret FROM ${table}
          WHERE user_id = '${ada.id}' AND ${column} IS NOT NULL`,
      );
      stored.push(...rows.map(({ secret }) => secret));
    }
    const [account] = await owner<{ hash: string }>(
      `SELECT password_hash AS hash FROM users WHERE id = '${ada.id}'`,
    );
    const token = ada.cookie.split('=')[1] ?? '';
    const secrets = [PASSWORD, token, key.key, account?.hash, `of-a-channel-${ada.id}`, ...stored];
    expect(stored.length).toBeGreaterThan(7);
    const { status, text } = await exported();
    expect(status).toBe(200);
    expect(secrets.filter((secret) => secret === undefined || text.includes(secret))).toEqual([]);
  });

  test('the export holds no data of other users', attack, async () => {
    const bob = await somebody();
    await leaveReadableTraces(bob);
    await leaveReadableTraces(ada);
    const { text } = await exported();
    expect([bob.id, bob.email, bob.name].filter((mark) => text.includes(mark))).toEqual([]);
  });
});
