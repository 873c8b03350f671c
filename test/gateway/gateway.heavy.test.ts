import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import type { Listening } from '../../api/http/server.js';
import { createWeb } from '../../api/web/web.js';
import { createApiKey } from '../../src/accounts/accounts/api-keys.js';
import { HOLD_MS, RUN_MS, type PaymentSource } from '../../src/gateway/debits.js';
import { Gateway } from '../../src/gateway/gateway.js';
import { GatewayCatalogue } from '../../src/gateway/gateway-catalogue.js';
import { checkLedger, LEDGER_CHECKS } from '../../src/money/ledger-check/check-ledger.js';
import { HoldNotOpenError, transfer } from '../../src/money/ledger/ledger.js';
import { releaseExpiredHolds } from '../../src/money/ledger/release-expired-holds.js';
import { newSessionToken } from '../../src/money/sessions/session-token.js';
import { queryRows } from '../platform/database/catalog.js';
import { textsOfRows } from '../platform/database/traces.js';
import { makeAccount, signIn, type TestAccount } from '../support/account.js';
import { databaseAlone } from '../support/dependencies.js';
import { until } from '../support/until.js';
import { call, send, type Answer } from '../support/http.js';
import { keptLog } from '../support/platform-environment.js';
import { testDatabase, type TestDatabase } from '../support/postgres.js';
import {
  booksOf,
  creditsByKind,
  creditsLeft,
  giveCredits,
  grantCredits,
  openSession,
  PRICE,
  setState,
  testActions,
  type Behaviour,
  type TestSession,
} from './support.js';

const attack = { tags: 'attack' };

const PATH = '/api/v1/gateway';
const ESCROW = `0x${'e'.repeat(40)}`;

const { log, lines } = keptLog();
const behaviour: Behaviour = { run: (text) => Promise.resolve(text) };

let database: TestDatabase;
let alone: Awaited<ReturnType<typeof databaseAlone>>;
/** Sells the actions of the test. */
let web: Listening;
/** Sells the actions of the test with a time limit of 1 ms. */
let hasty: Listening;
/** Sells the actions of the product. */
let real: Listening;

beforeAll(async () => {
  database = await testDatabase();
  alone = await databaseAlone(database, log, {
    ESCROW_ADDRESS: ESCROW,
    TRUSTED_PROXIES: '127.0.0.1',
  });
  const { dependencies } = alone;
  const selling = (runMs: number) => {
    const gateway = new Gateway({
      catalogue: new GatewayCatalogue(testActions(behaviour)),
      log,
      runMs,
    });
    return createWeb({ ...dependencies, gateway }).listen('127.0.0.1', 0);
  };
  web = await selling(RUN_MS);
  hasty = await selling(1);
  real = await createWeb(dependencies).listen('127.0.0.1', 0);
});
afterAll(async () => {
  await Promise.all([web, hasty, real].map((each) => each?.close()));
  await alone?.close();
  await database?.close();
});
beforeEach(() => {
  behaviour.run = (text) => Promise.resolve(text);
});

type Headers = Readonly<Record<string, string>>;

const ORDER = { plugin: 'echo', action: 'say', input: { text: 'hello' } };

const buy = (headers: Headers, body: unknown = ORDER, at: Listening = web): Promise<Answer> =>
  call(at.url, 'POST', PATH, { body, headers });

const open = (deposit: bigint) => openSession(database.db, deposit);
const books = (session: TestSession) => booksOf(database.db, session);
const owner = <Row extends object>(sql: string) => queryRows<Row>(database.ownerUrl, sql);

async function person(credits: bigint): Promise<TestAccount & { readonly cookie: string }> {
  const account = await makeAccount(database.db);
  if (credits > 0n) await giveCredits(database.db, account.id, credits);
  return { ...account, cookie: await signIn(database.db, account) };
}

function openable() {
  let open: () => void = () => undefined;
  const opened = new Promise<void>((resolve) => (open = resolve));
  return { opened, open };
}

/** Makes actions begin and pauses them until `open` is called. */
function gate() {
  const begun: string[] = [];
  const { open, opened } = openable();
  behaviour.run = async (text) => {
    begun.push(text);
    await opened;
    return text;
  };
  const untilBegun = (count: number) =>
    until(() => Promise.resolve(begun.length >= count || undefined));
  return { begun, untilBegun, open };
}

const remainingOf = ({ headers }: Answer) => headers.get('x-session-remaining');

const isServed = ({ status }: Answer) => status === 200;

test('lists actions with their price and input, and the payment terms', async () => {
  const { body, headers, status } = await call(real.url, 'GET', PATH);
  expect([status, headers.get('ratelimit-limit')]).toEqual([200, '100']);
  const sold = body.plugins.map(({ plugin, action, price, currency, input }: typeof body) => [
    ...[plugin, action, price, currency],
    Object.keys(input.properties),
  ]);
  expect(sold).toEqual([
    ['chain', 'transfers', '0.001000', 'USD', ['hash']],
    ['ai', 'chat', '0.010000', 'USD', ['messages', 'max_tokens']],
  ]);
  expect(body.payment).toEqual({
    chainId: 4217,
    network: 'tempo',
    decimals: 6,
    escrow: '0xEeeeeEeeeEeEeeEeEeEeeEEEeeeeEeeeeeeeEEeE',
    token: '0x20C0000000000000000000000000000000000000',
    operator: null,
    treasury: null,
    holdSeconds: 172_800,
    minDeposit: '1.000000',
    maxDeposit: '100.000000',
  });
});

test('rate limits each caller to 100 requests a minute', async () => {
  const { headers } = await buy({});
  expect(headers.get('ratelimit-limit')).toBe('100');
});

describe('payment by a payment session', () => {
  test('records a debit and a voucher for each run paid by a session', async () => {
    const session = await open(3n * PRICE);
    const answers = [await buy(session.headers), await buy(session.headers)];
    const { vouchers, ...rest } = await books(session);
    answers.forEach(({ body, status }, index) => {
      expect([status, body]).toEqual([
        200,
        {
          plugin: 'echo',
          action: 'say',
          result: { text: 'hello' },
          payment: {
            method: 'session',
            amount: '0.001000',
            currency: 'pathUSD',
            voucher: {
              id: vouchers[index]?.id,
              sequence: index + 1,
              plugin: 'echo',
              action: 'say',
              amount: '0.001000',
              cumulative: `0.00${index + 1}000`,
              createdAt: expect.any(Number),
            },
            remaining: `0.00${2 - index}000`,
          },
        },
      ]);
    });
    expect(answers.map(remainingOf)).toEqual(['0.002000', '0.001000']);
    expect(rest).toEqual({
      delivered: 2n * PRICE,
      nextSequence: 3,
      settlementDueAt: expect.any(Date),
      left: PRICE,
      held: 0n,
      spent: 2n * PRICE,
    });
  });

  test('shows only unsettled vouchers of a session', async () => {
    const session = await open(3n * PRICE);
    await buy(session.headers);
    await buy(session.headers);
    const show = async () => {
      const path = `/api/wallet/sessions?sessionId=${session.token}`;
      const { body } = await call(web.url, 'GET', path);
      const { remaining, spent, vouchers } = body.session;
      return { remaining, spent, vouchers: vouchers.map((each: typeof body) => each.cumulative) };
    };
    expect(await show()).toEqual({
      spent: '0.002000',
      remaining: '0.001000',
      vouchers: ['0.001000', '0.002000'],
    });
    await transfer(database.db.asPlatform(), {
      debit: `session:${session.id}:spent`,
      credit: 'treasury',
      currency: 'pathusd',
      amount: PRICE,
      cause: `settlement:${session.id}:${PRICE}`,
    });
    await owner(`UPDATE payment_sessions SET settled = ${PRICE} WHERE id = '${session.id}'`);
    expect((await show()).vouchers).toEqual(['0.002000']);
    const { body } = await call(web.url, 'GET', `/api/wallet/sessions?address=${session.address}`);
    expect(body.sessions[0]).toMatchObject({ spent: '0.002000', vouchers: [] });
  });

  test('pages through all unsettled vouchers of a session, oldest first', async () => {
    const session = await open(3n * PRICE);
    await owner(
      `INSERT INTO payment_vouchers (id, session_id, sequence, amount, cumulative, plugin, action)
       SELECT '${session.id}' || n, '${session.id}', n, 1, n, 'echo', 'say'
         FROM generate_series(1, 2103) n`,
    );
    await owner(
      `UPDATE payment_sessions SET settled = 3, delivered = 2103 WHERE id = '${session.id}'`,
    );
    // The ledger has no entries for these vouchers.
    onTestFinished(async () => {
      await owner(`DELETE FROM payment_vouchers WHERE session_id = '${session.id}'`);
      await owner(
        `UPDATE payment_sessions SET settled = 0, delivered = 0 WHERE id = '${session.id}'`,
      );
    });
    const at = `/api/wallet/sessions?sessionId=${session.token}`;
    const pages: number[][] = [];
    for (let path: string | undefined = `${at}&vouchers=all`; path !== undefined;) {
      const { body, headers }: Answer = await call(web.url, 'GET', path);
      pages.push(body.session.vouchers.map(({ sequence }: typeof body) => sequence));
      path = /^<(.+)>; rel="next"$/.exec(headers.get('link') ?? '')?.[1];
    }
    expect(pages.map(({ length }) => length)).toEqual([1_000, 1_000, 100]);
    expect(pages.flat()).toEqual(Array.from({ length: 2_100 }, (_, index) => index + 4));
    const { body, headers } = await call(web.url, 'GET', at);
    expect(headers.get('link')).toBeNull();
    expect(body.session.vouchers).toHaveLength(1_000);
    expect(body.session.vouchers.at(-1).sequence).toBe(2_103);
  });

  test("accepts the session's wallet address in any case", async () => {
    const { headers, address } = await open(PRICE);
    const upper = { ...headers, 'x-wallet-address': `0x${address.slice(2).toUpperCase()}` };
    expect((await buy(upper)).status).toBe(200);
  });

  test('charges the session before a cookie or an API key', async () => {
    const session = await open(PRICE);
    const { cookie, id } = await person(PRICE);
    expect((await buy({ ...session.headers, cookie })).body.payment.method).toBe('session');
    expect((await creditsLeft(database.db, id)).balance).toBe(PRICE);
  });

  test('settles a session within an hour, and at once above the threshold', async () => {
    const session = await open(30_000_000n);
    await buy(session.headers);
    const { settlementDueAt: first } = await books(session);
    expect(first?.getTime()).toBeGreaterThan(Date.now() + 1_800_000);
    expect(first?.getTime()).toBeLessThanOrEqual(Date.now() + 3_600_000);
    await buy(session.headers);
    expect((await books(session)).settlementDueAt).toEqual(first);
    // Simulates an expensive purchase.
    const shifted = (amount: number) =>
      owner(
        `UPDATE payment_sessions SET delivered = delivered + ${amount} WHERE id = '${session.id}'`,
      );
    await shifted(9_997_000);
    await buy(session.headers);
    const now = (await books(session)).settlementDueAt?.getTime() ?? Infinity;
    expect(now).toBeLessThan(first?.getTime() ?? 0);
    await shifted(-9_997_000);
  });
});

describe('payment by credits', () => {
  test('charges a run to the credits of the signed-in user', async () => {
    const { cookie, id } = await person(3n * PRICE);
    const answer = await buy({ cookie });
    expect([answer.status, answer.body.payment]).toEqual([
      200,
      { method: 'credits', amount: '0.001000', currency: 'USD', remaining: '0.002000' },
    ]);
    expect(remainingOf(answer)).toBeNull();
    expect(await creditsLeft(database.db, id)).toEqual({
      balance: 2n * PRICE,
      held: 0n,
      spent: PRICE,
    });
  });

  test('charges credits by API key too, and replays a request made with either login', async () => {
    const { cookie, id } = await person(3n * PRICE);
    const asked = { name: 'a program', site: 'here' };
    const by = { userId: id, requestId: randomUUID() };
    const { key } = await createApiKey(database.db, by, asked);
    const authorization = `Bearer ${key}`;
    const once = { 'idempotency-key': randomUUID() };
    const first = await buy({ ...once, authorization });
    const again = await buy({ ...once, cookie });
    expect([first.status, again.text]).toEqual([200, first.text]);
    expect((await creditsLeft(database.db, id)).spent).toBe(PRICE);
    expect((await buy({ authorization })).status).toBe(200);
  });

  test('charges granted credits first, then bought ones, and shows the sum that remains', async () => {
    const { cookie, id } = await person(2n * PRICE);
    await grantCredits(database.db, id, PRICE + 1n);
    const remaining: string[] = [];
    for (let runs = 0; runs < 2; runs += 1) {
      remaining.push((await buy({ cookie })).body.payment.remaining);
    }
    expect(remaining).toEqual(['0.002001', '0.001001']);
    const left = { bought: PRICE + 1n, granted: 0n, spent: 2n * PRICE };
    expect(await creditsByKind(database, id)).toEqual(left);
  });

  test('charges neither kind of credits for a failed run', async () => {
    const { cookie, id } = await person(PRICE);
    await grantCredits(database.db, id, 1n);
    behaviour.run = () => Promise.reject(new Error('down'));
    expect((await buy({ cookie })).status).toBe(502);
    const left = { bought: PRICE, granted: 1n, spent: 0n };
    expect(await creditsByKind(database, id)).toEqual(left);
  });

  test('charges nothing after the holds of both kinds have expired', async () => {
    const { cookie, id } = await person(PRICE);
    await grantCredits(database.db, id, 1n);
    const running = gate();
    const asked = buy({ cookie });
    await running.untilBegun(1);
    expect(await creditsByKind(database, id)).toEqual({ bought: 1n, granted: 0n, spent: 0n });
    await owner(`UPDATE ledger_holds SET expires_at = now() - interval '1 s' WHERE state = 'open'`);
    expect(await releaseExpiredHolds(database.db)).toBe(2);
    running.open();
    expect((await asked).status).toBe(502);
    const left = { bought: PRICE, granted: 1n, spent: 0n };
    expect(await creditsByKind(database, id)).toEqual(left);
  });

  test('concurrent runs spend both kinds of credits exactly', attack, async () => {
    const { cookie, id } = await person(2n * PRICE + 1n);
    await grantCredits(database.db, id, 3n * PRICE - 1n);
    const answers = await Promise.all(Array.from({ length: 12 }, () => buy({ cookie })));
    expect(answers.filter(isServed)).toHaveLength(5);
    const left = { bought: 0n, granted: 0n, spent: 5n * PRICE };
    expect(await creditsByKind(database, id)).toEqual(left);
  });

  test('answers an invalid API key with 401, not with a request to pay', async () => {
    expect((await buy({ authorization: 'Bearer sk_none' })).status).toBe(401);
  });
});

describe('unpaid requests', () => {
  let ran = 0;
  beforeEach(() => {
    ran = 0;
    behaviour.run = (text) => {
      ran += 1;
      return Promise.resolve(text);
    };
  });

  test('reports malformed and unknown requests before it demands payment', async () => {
    const refused: [unknown, number, string][] = [
      ['no JSON', 400, 'JSON'],
      [{ action: 'say' }, 400, 'plugin is required'],
      [{ plugin: 'echo', action: 'say', input: 1 }, 400, 'input must be an object'],
      [{ plugin: 'other', action: 'say' }, 404, 'Unknown plugin'],
      [{ plugin: 'echo', action: 'other' }, 404, 'Unknown action'],
      [{ plugin: 'echo', action: 'say' }, 400, 'text is required'],
      [
        { plugin: 'echo', action: 'say', input: { text: 'a', more: 1 } },
        400,
        'more is not a known field',
      ],
      [ORDER, 402, 'Pay by'],
    ];
    for (const [body, status, error] of refused) {
      const answer = await buy({}, body);
      expect([answer.status, answer.body.error]).toEqual([status, expect.stringContaining(error)]);
    }
  });

  test('sells no x402 actions without an x402 gateway URL', async () => {
    const session = await open(PRICE);
    for (const headers of [{}, session.headers]) {
      const { body, status } = await buy(headers, { plugin: 'x402', action: 'a-slug' }, real);
      expect([status, body]).toEqual([404, { error: 'Unknown plugin' }]);
    }
    expect(await books(session)).toMatchObject({ left: PRICE, held: 0n, vouchers: [] });
  });

  test('answers a request without payment with 402, the price and the payment terms', async () => {
    const offered = await call(web.url, 'GET', PATH);
    const { cookie } = await person(0n);
    const half = { 'x-session-id': newSessionToken() };
    const shown: Headers[] = [{}, half, { cookie: `${cookie}a` }];
    for (const headers of shown) {
      const { body, status } = await buy(headers);
      expect([status, body]).toEqual([
        402,
        {
          error: expect.any(String),
          code: 'PAYMENT_REQUIRED',
          price: '0.001000',
          currency: 'USD',
          payment: offered.body.payment,
        },
      ]);
    }
  });

  test('rejects a session that is unknown or belongs to another wallet', attack, async () => {
    const session = await open(PRICE);
    const other = await open(PRICE);
    for (const headers of [
      { 'x-session-id': newSessionToken(), 'x-wallet-address': session.address },
      { 'x-session-id': session.token, 'x-wallet-address': other.address },
      { 'x-session-id': session.id, 'x-wallet-address': session.address },
      { 'x-session-id': 'ses_', 'x-wallet-address': "' OR true --" },
    ]) {
      const answer = await buy({ ...headers, 'idempotency-key': 'one' });
      expect([answer.status, answer.body]).toEqual([
        402,
        { error: expect.any(String), code: 'SESSION_INVALID' },
      ]);
      expect(remainingOf(answer)).toBeNull();
    }
    expect(ran).toBe(0);
  });

  test('rejects a session that is settling or closed', async () => {
    const session = await open(2n * PRICE);
    await buy(session.headers);
    for (const state of ['settling', 'closed'] as const) {
      await setState(database.ownerUrl, session, state);
      const answer = await buy(session.headers);
      expect([answer.status, answer.body.code]).toEqual([402, 'SESSION_CLOSED']);
      expect(remainingOf(answer)).toBe('0.001000');
    }
    expect(ran).toBe(1);
  });

  test('rejects a session with too little left', async () => {
    const session = await open(PRICE + 1n);
    await buy(session.headers);
    const answer = await buy(session.headers);
    expect([answer.status, answer.body]).toEqual([
      402,
      {
        error: expect.any(String),
        code: 'SESSION_EXHAUSTED',
        price: '0.001000',
        remaining: '0.000001',
      },
    ]);
    expect(remainingOf(answer)).toBe('0.000001');
    expect(ran).toBe(1);
  });

  test('runs own actions up to the maximum price, if there is one', async () => {
    const { cookie } = await person(PRICE);
    const above = await buy({ cookie }, { ...ORDER, maxPrice: '0.000999' });
    expect([above.status, above.body.code]).toEqual([402, 'PRICE_ABOVE_MAXIMUM']);
    expect(remainingOf(above)).toBeNull();
    expect(ran).toBe(0);
    expect((await buy({ cookie }, { ...ORDER, maxPrice: '0.001' })).status).toBe(200);
  });

  test('rejects a user with too few credits', async () => {
    const { cookie } = await person(PRICE - 1n);
    const { body, status } = await buy({ cookie });
    expect([status, body]).toEqual([
      402,
      {
        error: expect.any(String),
        code: 'CREDITS_EXHAUSTED',
        price: '0.001000',
        remaining: '0.000999',
      },
    ]);
    expect(ran).toBe(0);
  });
});

describe('failed requests', () => {
  const expectUnpaid = async (session: TestSession, user: TestAccount) => {
    expect(await books(session)).toMatchObject({ vouchers: [], left: PRICE, held: 0n });
    const { balance, held } = await creditsLeft(database.db, user.id);
    expect([balance, held]).toEqual([PRICE, 0n]);
  };

  test('answers a failed action with 502 and rejected input with 400, both unpaid', async () => {
    const session = await open(PRICE);
    const user = await person(PRICE);
    for (const headers of [session.headers, { cookie: user.cookie }]) {
      behaviour.run = () => Promise.reject(new Error('upstream secret'));
      const failed = await buy(headers);
      expect([failed.status, failed.body.error]).toEqual([502, 'echo say failed']);
      const refused = await buy(headers, { ...ORDER, input: { text: 'refused' } });
      expect([refused.status, refused.body.error]).toEqual([400, 'Cannot echo this text']);
    }
    await expectUnpaid(session, user);
  });

  test('answers a run over the time limit with 502, unpaid', async () => {
    const session = await open(PRICE);
    const user = await person(PRICE);
    const signals: AbortSignal[] = [];
    behaviour.run = (_, signal) => {
      signals.push(signal);
      return new Promise(() => undefined);
    };
    for (const headers of [session.headers, { cookie: user.cookie }]) {
      const { body, status } = await buy(headers, ORDER, hasty);
      expect([status, body.error]).toEqual([502, 'echo say took too long: retry later']);
    }
    expect(signals.map(({ aborted }) => aborted)).toEqual([true, true]);
    await expectUnpaid(session, user);
  });

  test('releases the hold of a dead process within two minutes and never charges it later', async () => {
    // Ended holds are released about twice a minute (temporal/schedules.ts).
    expect(HOLD_MS + 32_000).toBeLessThan(120_000);
    expect(RUN_MS).toBe(60_000);
    expect(HOLD_MS).toBeGreaterThan(RUN_MS);
    const session = await open(PRICE);
    const user = await person(PRICE);
    const running = gate();
    const asked = [buy(session.headers), buy({ cookie: user.cookie })];
    await running.untilBegun(2);
    expect((await books(session)).held).toBe(PRICE);
    await owner(`UPDATE ledger_holds SET expires_at = now() - interval '1 s' WHERE state = 'open'`);
    expect(await releaseExpiredHolds(database.db)).toBe(2);
    running.open();
    for (const { body, status } of await Promise.all(asked)) {
      expect([status, body.error]).toEqual([502, 'echo say took too long: retry later']);
    }
    await expectUnpaid(session, user);
  });
});

describe('successful requests', () => {
  test('charges a run whose client has disconnected, and keeps its answer', async () => {
    const session = await open(3n * PRICE);
    const running = gate();
    const leaving = new AbortController();
    const headers = { ...session.headers, 'idempotency-key': randomUUID() };
    const left = send(web.url, 'POST', PATH, { body: ORDER, headers, signal: leaving.signal });
    const gone = expect(left).rejects.toThrow();
    await running.untilBegun(1);
    leaving.abort();
    await gone;
    running.open();
    const { vouchers } = await until(async () => {
      const found = await books(session);
      return found.vouchers.length > 0 ? found : undefined;
    });
    expect(vouchers).toHaveLength(1);
    // A retry gets the answer that the client missed.
    const again = await buy(headers);
    expect([again.status, again.body.payment.voucher.id]).toEqual([200, vouchers[0]?.id]);
    expect(again.headers.get('idempotent-replayed')).toBe('true');
    expect(running.begun).toHaveLength(1);
  });

  test('replays the first answer with its headers', async () => {
    const session = await open(2n * PRICE);
    const headers = { ...session.headers, 'idempotency-key': randomUUID() };
    const first = await buy(headers);
    await buy(session.headers);
    const again = await buy(headers);
    expect([again.status, again.text, remainingOf(again)]).toEqual([200, first.text, '0.001000']);
    expect((await books(session)).vouchers).toHaveLength(2);
    expect((await buy(headers, { ...ORDER, input: { text: 'other' } })).status).toBe(422);
  });

  test('runs a request again with its key after a 402', async () => {
    const session = await open(PRICE);
    await buy(session.headers);
    const refused = { ...session.headers, 'idempotency-key': randomUUID() };
    for (const { headers, status } of [await buy(refused), await buy(refused)]) {
      expect([status, headers.get('idempotent-replayed')]).toEqual([402, null]);
      expect(headers.get('x-session-remaining')).toBe('0.000000');
    }
    const user = await person(0n);
    const key = { cookie: user.cookie, 'idempotency-key': randomUUID() };
    expect((await buy(key)).status).toBe(402);
    await giveCredits(database.db, user.id, PRICE);
    expect((await buy(key)).status).toBe(200);
  });

  test('keeps equal idempotency keys of two sessions apart', attack, async () => {
    const [one, two] = [await open(PRICE), await open(PRICE)];
    const key = { 'idempotency-key': randomUUID() };
    const answers = [
      await buy({ ...one.headers, ...key }),
      await buy({ ...two.headers, ...key }),
      await buy(key),
      await buy({ ...one.headers, ...key, 'x-wallet-address': two.address }),
    ];
    expect(answers.map(({ status, body }) => [status, body.code])).toEqual([
      [200, undefined],
      [200, undefined],
      [402, 'PAYMENT_REQUIRED'],
      [402, 'SESSION_INVALID'],
    ]);
    expect((await books(one)).vouchers).toHaveLength(1);
    expect((await books(two)).vouchers).toHaveLength(1);
  });

  test.each(['session', 'credits'])(
    'stores the answer in the transaction of the payment, by %s',
    async (method) => {
      const session = await open(2n * PRICE);
      const user = await person(2n * PRICE);
      const key = randomUUID();
      const by: Headers = method === 'session' ? session.headers : { cookie: user.cookie };
      const headers = { ...by, 'idempotency-key': key };
      const spent = async () =>
        (method === 'session' ? await books(session) : await creditsLeft(database.db, user.id))
          .spent;
      // Suppresses updates outside the payment's transaction, as if the process had died after it.
      await owner(
        `CREATE TABLE public.payments_seen (at bigint);
         GRANT INSERT, SELECT ON payments_seen TO PUBLIC;
         CREATE FUNCTION see_payment() RETURNS trigger LANGUAGE plpgsql AS
         $$BEGIN INSERT INTO public.payments_seen VALUES (txid_current()); RETURN NULL; END$$;
         CREATE TRIGGER see_payment AFTER INSERT ON ledger_transfers
           FOR EACH ROW EXECUTE FUNCTION see_payment();
         CREATE FUNCTION only_with_payment() RETURNS trigger LANGUAGE plpgsql AS
         $$BEGIN
           IF EXISTS (SELECT FROM public.payments_seen WHERE at = txid_current()) THEN RETURN NEW; END IF;
           RETURN NULL;
         END$$;
         CREATE TRIGGER only_with_payment BEFORE UPDATE ON idempotency_keys
           FOR EACH ROW EXECUTE FUNCTION only_with_payment()`,
      );
      try {
        const first = await buy(headers);
        const again = await buy(headers);
        expect([first.status, again.text, remainingOf(again)]).toEqual([
          200,
          first.text,
          remainingOf(first),
        ]);
        expect(await spent()).toBe(PRICE);
      } finally {
        await owner(
          `DROP FUNCTION only_with_payment CASCADE; DROP FUNCTION see_payment CASCADE;
           DROP TABLE payments_seen`,
        );
      }
    },
  );

  test('charges nothing for a run whose idempotency key another request has taken over', async () => {
    const session = await open(2n * PRICE);
    const key = randomUUID();
    const headers = { ...session.headers, 'idempotency-key': key };
    const running = gate();
    const first = buy(headers);
    await running.untilBegun(1);
    // Expires the lock, as if the first request's process were dead.
    await owner(
      `UPDATE idempotency_keys SET locked_until = now() - interval '1 s' WHERE key = '${key}'`,
    );
    const second = buy(headers);
    await running.untilBegun(2);
    running.open();
    const answers = await Promise.all([first, second]);
    expect(answers.map(({ status }) => status)).toEqual([409, 200]);
    const { vouchers, held } = await books(session);
    expect(vouchers.map(({ id }) => id)).toEqual([answers[1]?.body.payment.voucher.id]);
    expect(held).toBe(0n);
    expect((await buy(headers)).text).toBe(answers[1]?.text);
  });
});

describe('concurrent debits', () => {
  /** Compares the stored state with that of the same debits made one after another. */
  async function expectInOrder(session: TestSession, deposit: bigint, served: readonly Answer[]) {
    const { vouchers, ...rest } = await books(session);
    const sum = PRICE * BigInt(served.length);
    expect(vouchers.map(({ cumulative, sequence }) => [sequence, cumulative])).toEqual(
      served.map((_, index) => [index + 1, PRICE * BigInt(index + 1)]),
    );
    expect(served.map(({ body }) => body.payment.voucher.id).toSorted()).toEqual(
      vouchers.map(({ id }) => id).toSorted(),
    );
    expect(rest).toMatchObject({
      delivered: sum,
      spent: sum,
      held: 0n,
      left: deposit - sum,
      nextSequence: served.length + 1,
    });
  }

  const codesOf = (answers: readonly Answer[]) => [
    ...new Set(answers.filter((answer) => !isServed(answer)).map(({ body }) => body.code)),
  ];

  test('never debits a session above its deposit in 200 concurrent requests', attack, async () => {
    const deposit = 120n * PRICE;
    const session = await open(deposit);
    const answers = await Promise.all(Array.from({ length: 200 }, () => buy(session.headers)));
    const served = answers.filter(isServed);
    expect(served).toHaveLength(120);
    expect(codesOf(answers)).toEqual(['SESSION_EXHAUSTED']);
    await expectInOrder(session, deposit, served);
  });

  test('debits each of 100 concurrent sessions only once', attack, async () => {
    const sessions = await Promise.all(Array.from({ length: 100 }, () => open(PRICE)));
    const asked = [...sessions, ...sessions].map((session) => buy(session.headers));
    const answers = await Promise.all(asked);
    expect(codesOf(answers)).toEqual(['SESSION_EXHAUSTED']);
    for (const [index, session] of sessions.entries()) {
      const served = answers.filter((answer, at) => at % 100 === index && isServed(answer));
      expect(served).toHaveLength(1);
      await expectInOrder(session, PRICE, served);
    }
  });

  test('accepts no debit of a session once it is settling', attack, async () => {
    const deposit = 300n * PRICE;
    const session = await open(deposit);
    const running = gate();
    const some = (count: number) => Array.from({ length: count }, () => buy(session.headers));
    const before = some(100);
    await running.untilBegun(50);
    const closing = setState(database.ownerUrl, session, 'settling');
    const concurrent = some(50);
    await closing;
    // Holds that exist when the session starts to settle; no more may be added.
    const [begun] = await owner<{ count: number }>(
      `SELECT count(*)::integer AS count FROM ledger_holds WHERE debit = 'session:${session.id}'`,
    );
    const after = await Promise.all(some(50));
    running.open();
    const answers = [...(await Promise.all([...before, ...concurrent])), ...after];
    expect(after.filter(isServed)).toEqual([]);
    expect(codesOf(answers)).toEqual(['SESSION_CLOSED']);
    const served = answers.filter(isServed);
    expect(served).toHaveLength(begun?.count ?? 0);
    await expectInOrder(session, deposit, served);
  });

  test('never debits a user above their credits in 50 concurrent requests', attack, async () => {
    const { cookie, id } = await person(20n * PRICE);
    const answers = await Promise.all(Array.from({ length: 50 }, () => buy({ cookie })));
    expect(answers.filter(isServed)).toHaveLength(20);
    const left = { balance: 0n, held: 0n, spent: 20n * PRICE };
    expect(await creditsLeft(database.db, id)).toEqual(left);
  });
});

test('keeps session tokens out of logs and tables', attack, async () => {
  const session = await open(3n * PRICE);
  const headers = { ...session.headers, 'idempotency-key': randomUUID() };
  behaviour.run = () => Promise.reject(new Error('down'));
  await buy(headers);
  behaviour.run = (text) => Promise.resolve(text);
  await buy(headers);
  await setState(database.ownerUrl, session, 'settling');
  await buy(session.headers);
  const isLogged = () => lines.filter((line) => line.includes(session.id)).length >= 3;
  await until(() => Promise.resolve(isLogged() || undefined));
  const secret = session.token.slice('ses_'.length, -4);
  expect(lines.filter((line) => line.includes(secret))).toEqual([]);
  const rows = await textsOfRows(database.db.asPlatform());
  expect(rows.some((row) => row.includes(session.id))).toBe(true);
  expect(rows.filter((row) => row.includes(secret))).toEqual([]);
});

test('keeps the ledger balanced after all gateway requests', async () => {
  expect((await checkLedger(database.db, LEDGER_CHECKS)).differences).toEqual([]);
});

test('releases a hold whose result is unknown', async () => {
  const [action] = testActions(behaviour);
  if (!action) throw new Error('no test action exists');
  const lost = new Error('the connection was lost');
  const released: string[] = [];
  const purse: PaymentSource = {
    method: 'session',
    buyer: 'buyer',
    remaining: () => Promise.resolve(0n),
    hold: () => Promise.reject(lost),
    post: () => Promise.reject(lost),
    release({ id }) {
      released.push(id);
      return Promise.resolve();
    },
  };
  const gateway = new Gateway({ catalogue: new GatewayCatalogue([action]), log });
  const input: unknown = action.input.parse({ text: 'hello' });
  await expect(gateway.serve({ action, input, purse, idempotencyKey: 'key' })).rejects.toBe(lost);
  expect(released).toHaveLength(1);
});

test('retries a payment whose result is unknown, but not a refused payment', async () => {
  const [action] = testActions(behaviour);
  if (!action) throw new Error('no test action exists');
  const lost = new Error('the connection was lost');
  const over = new HoldNotOpenError('voucher:1', 'released');
  const gateway = new Gateway({ catalogue: new GatewayCatalogue([action]), log });
  const input: unknown = action.input.parse({ text: 'hello' });
  const posted = async (answers: readonly (Error | undefined)[]) => {
    let asked = 0;
    const purse: PaymentSource = {
      method: 'session',
      buyer: 'buyer',
      remaining: () => Promise.resolve(0n),
      hold: () => Promise.resolve(undefined),
      post() {
        const answer = answers[asked++];
        return answer ? Promise.reject(answer) : Promise.resolve({ remaining: 7n });
      },
      release: () => Promise.resolve(),
    };
    const served = await gateway
      .serve({ action, input, purse, idempotencyKey: 'key' })
      .catch((error: unknown) => error);
    return { asked, served };
  };
  const paid = { asked: 3, served: { remaining: 7n, result: { text: 'hello' } } };
  expect(await posted([lost, lost])).toEqual(paid);
  expect(await posted([lost, lost, lost])).toEqual({ asked: 3, served: lost });
  expect(await posted([over])).toMatchObject({ asked: 1, served: { status: 502 } });
});
