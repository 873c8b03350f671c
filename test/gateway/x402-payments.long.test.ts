import { randomUUID } from 'node:crypto';
import type { IncomingHttpHeaders, RequestListener, ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { pino } from 'pino';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { Listening } from '../../api/http/server.js';
import { createWeb } from '../../api/web/web.js';
import { x402Settings } from '../../src/gateway/settings.js';
import { X402Gateway } from '../../src/gateway/x402-gateway.js';
import { endUnanswered, X402Payments } from '../../src/gateway/x402-payments.js';
import { debtOf, transfer } from '../../src/money/ledger/ledger.js';
import { readAreas } from '../../src/platform/environment/read.js';
import { endX402PaymentsPeriodically } from '../../worker/end-x402-payments.js';
import { makeAgent } from '../money/splits/support.js';
import { queryRows } from '../platform/database/catalog.js';
import { makeAccount, signIn, type TestAccount } from '../support/account.js';
import { databaseAlone } from '../support/dependencies.js';
import { call } from '../support/http.js';
import { testDatabase, type TestDatabase } from '../support/postgres.js';
import { stub, type StubService } from './stub-service.js';

const attack = { tags: 'attack' };

const RECIPIENT = `0x${'aB'.repeat(20)}`;
const LIMITS = { X402_PAY_DAILY: '20.00', X402_PAY_DAILY_TOTAL: '50.00' };
const FAILED = [500, { success: false, error: 'x402 gateway error' }];

/** A user with an agent, signed in. */
interface Payer extends TestAccount {
  readonly cookie: string;
  readonly agentId: string;
}

/** A payment that the gateway received. */
interface Asked {
  readonly key: string | string[] | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly fields: unknown;
}

interface Row {
  readonly id: string;
  readonly state: string;
  readonly attempt: number;
  readonly amount: string;
}

const json = (response: ServerResponse, status: number, said: unknown) =>
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(said));

const asked: Asked[] = [];
const pays = (response: ServerResponse): unknown => json(response, 200, { transaction: '0x1' });
let answer = pays;

const upstream: RequestListener = (request, response) => {
  const { headers } = request;
  void text(request).then((body) => {
    asked.push({ key: headers['idempotency-key'], headers, fields: JSON.parse(body) });
    answer(response);
  });
};

const opened: { close(): Promise<unknown> }[] = [];
let database: TestDatabase;
let gateway: StubService;
let web: Listening;
let ada: Payer;

beforeAll(async () => {
  database = await testDatabase();
  gateway = await stub(upstream);
  opened.push(gateway);
  web = await webOver(gateway.url);
});
beforeEach(async () => {
  ada = await payer();
});
afterEach(async () => {
  answer = pays;
  asked.length = 0;
  await owner('DELETE FROM x402_payments; DELETE FROM pending_notifications');
});
afterAll(async () => {
  for (const each of opened.reverse()) await each.close();
  await database?.close();
});

const owner = <Row extends object = object>(sql: string) => queryRows<Row>(database.ownerUrl, sql);

async function webOver(url: string, env: Readonly<Record<string, string>> = LIMITS) {
  const alone = await databaseAlone(database, undefined, {
    X402_GATEWAY_URL: url,
    TRUSTED_PROXIES: '127.0.0.1',
    ...env,
  });
  opened.push(alone);
  const listening = await createWeb(alone.dependencies).listen('127.0.0.1', 0);
  opened.push(listening);
  return listening;
}

async function payer(): Promise<Payer> {
  const account = await makeAccount(database.db);
  const agentId = await makeAgent(database.db, account.id);
  return { ...account, agentId, cookie: await signIn(database.db, account) };
}

interface Paying {
  readonly by?: Payer;
  readonly key?: string;
  readonly at?: Listening;
  readonly signal?: AbortSignal;
}

const pay = (fields: object = {}, { at = web, by = ada, key, signal }: Paying = {}) =>
  call(at.url, 'POST', '/api/x402', {
    body: { action: 'pay', agentId: by.agentId, amount: 5, recipient: RECIPIENT, ...fields },
    headers: { cookie: by.cookie, ...(key !== undefined && { 'idempotency-key': key }) },
    ...(signal && { signal }),
  });

const rows = () =>
  owner<Row>('SELECT id, state, attempt, amount FROM x402_payments ORDER BY created_at');

const states = async () => (await rows()).map(({ state }) => state);

const audit = (userId: string) =>
  owner<{ action: string; subject: string; detail: object; request_id: string | null }>(
    `SELECT action, subject, detail, request_id FROM audit_log
      WHERE user_id = '${userId}' AND action LIKE 'x402.%' ORDER BY id`,
  );

const notices = async () =>
  (await owner<{ event: unknown }>('SELECT event FROM pending_notifications')).map(
    ({ event }) => event,
  );

/** Expires the stored answers to `Idempotency-Key`s, as after a day. */
const forgetAnswers = () => owner('DELETE FROM idempotency_keys');

describe('a payment', () => {
  test("a payment is sent once, and returns the gateway's answer", async () => {
    const { body, status } = await pay({ amount: 1.2345675, endpoint: 'weather', more: 'x' });
    expect([status, body]).toEqual([200, { transaction: '0x1' }]);
    const [row] = await rows();
    expect(asked).toMatchObject([
      {
        key: row?.id,
        fields: {
          agentId: ada.agentId,
          amount: 1.234568,
          currency: 'USDC',
          recipient: RECIPIENT,
          endpoint: 'weather',
          method: 'default',
        },
      },
    ]);
    expect(Object.keys(asked[0]?.fields ?? {})).toHaveLength(6);
    expect(row).toMatchObject({ state: 'paid', attempt: 1, amount: '1234568' });
  });

  test.each([
    [0.000_000_5, 0.000_001],
    [1.1, 1.1],
    [100, 100],
    [99.999_999_4, 99.999_999],
  ])('with the amount %d is sent with %d', async (amount, sent) => {
    const at = await webOver(gateway.url, {});
    expect((await pay({ amount }, { at })).status).toBe(200);
    expect(asked).toMatchObject([{ fields: { amount: sent } }]);
  });

  test('passes on currency and method as they are, to an address of Solana', async () => {
    const fields = { currency: 'pathUSD', method: 'stream', recipient: '5'.repeat(44) };
    expect((await pay(fields)).status).toBe(200);
    expect(asked).toMatchObject([{ fields }]);
  });

  test(
    'a payment is stored as a row and an audit line before the call, and its outcome after the call',
    attack,
    async () => {
      let before: unknown;
      answer = async (response) => {
        before = [await states(), (await audit(ada.id)).map(({ action }) => action)];
        pays(response);
      };
      await pay({ currency: 'pathUSD', method: 'stream' });
      expect(before).toEqual([['pending'], ['x402.pay']]);
      const [row] = await rows();
      expect(await audit(ada.id)).toEqual([
        {
          action: 'x402.pay',
          subject: row?.id,
          request_id: expect.any(String),
          detail: {
            email: ada.email,
            amount: '5.000000',
            currency: 'pathUSD',
            recipient: RECIPIENT,
            method: 'stream',
            agentId: ada.agentId,
            attempt: 1,
          },
        },
        {
          action: 'x402.outcome',
          subject: row?.id,
          request_id: expect.any(String),
          detail: { outcome: 'paid', attempt: 1 },
        },
      ]);
    },
  );

  test.each<[string, string, (response: ServerResponse) => unknown]>([
    ['a 402', 'refused', (response) => json(response, 402, { error: 'inner' })],
    ['a 409', 'refused', (response) => json(response, 409, { error: 'inner' })],
    ['a 500', 'unknown', (response) => json(response, 500, { error: 'inner' })],
    ['a redirect', 'unknown', (response) => response.writeHead(307, { location: '/' }).end()],
    ['an end of the connection', 'unknown', (response) => response.destroy()],
    ['a 200 without JSON', 'paid', (response) => response.writeHead(200).end('inner')],
    ['a 200 with an array', 'paid', (response) => json(response, 200, ['inner'])],
    [
      'a 200 that ends early',
      'paid',
      (response) => {
        const head = { 'content-type': 'application/json', 'content-length': 1_000 };
        response.writeHead(200, head).write('{', () => response.destroy());
      },
    ],
    [
      'a 200 with endless nesting',
      'paid',
      (response) => {
        response.writeHead(200, { 'content-type': 'application/json' });
        response.end(`{"x": ${'['.repeat(200_000)}${']'.repeat(200_000)}}`);
      },
    ],
  ])('a payment is answered 500 after %s, and its outcome is %s', async (_name, outcome, how) => {
    answer = how;
    const { body, status } = await pay();
    expect([status, body]).toEqual(FAILED);
    expect(await states()).toEqual([outcome]);
    expect((await audit(ada.id)).at(-1)?.detail).toEqual({ outcome, attempt: 1 });
  });

  test('a payment has failed if the gateway refuses connections, or no TLS connection can be made', async () => {
    for (const url of ['http://127.0.0.1:1', `https://${gateway.place}`]) {
      const { body, status } = await pay({}, { at: await webOver(url) });
      expect([status, body]).toEqual(FAILED);
    }
    expect(await states()).toEqual(['failed', 'failed']);
  });

  test('a payment is unknown if the gateway does not answer in time', async () => {
    answer = () => undefined;
    const limits = { daily: 100_000_000n, dailyTotal: 100_000_000n };
    const slow = new X402Gateway(gateway.url, { callMs: 200 });
    const payments = new X402Payments(database.db, slow, limits);
    const paying = payments.pay({
      id: randomUUID(),
      requestId: 'a-request',
      user: ada,
      payment: {
        agentId: ada.agentId,
        amount: 1n,
        currency: 'USDC',
        recipient: RECIPIENT,
        endpoint: undefined,
        method: 'default',
      },
    });
    await expect(paying).rejects.toThrow('x402 gateway error');
    expect(await states()).toEqual(['unknown']);
  });

  test('continues when its client disconnects', attack, async () => {
    const client = new AbortController();
    let proceed = () => undefined as unknown;
    answer = (response) => {
      proceed = () => pays(response);
      client.abort();
    };
    await expect(pay({}, { signal: client.signal })).rejects.toThrow();
    proceed();
    await expect.poll(states).toEqual(['paid']);
  });

  test("a payment for another user's agent is a 404, and is not sent", attack, async () => {
    const bob = await payer();
    const { body, status } = await pay({ agentId: bob.agentId });
    expect([status, body]).toEqual([404, { success: false, error: 'Agent not found' }]);
    expect([asked, await rows()]).toEqual([[], []]);
  });

  test('a payment is a 402 while a payment of its user is disputed', attack, async () => {
    const dispute = (is: boolean) => `UPDATE checkouts SET is_disputed = ${is}`;
    await owner(
      `INSERT INTO checkouts (id, user_id, cents, currency, paid_at)
       VALUES ('${randomUUID()}', '${ada.id}', 500, 'usd', now() - interval '9 days')`,
    );
    await owner(dispute(true));
    const { body, status } = await pay();
    expect([status, body]).toMatchObject([402, { success: false, code: 'CREDITS_DISPUTED' }]);
    expect([asked, await rows()]).toEqual([[], []]);
    await owner(dispute(false));
    expect((await pay()).status).toBe(200);
  });

  test('a payment is a 402 while its user owes credits', attack, async () => {
    await transfer(database.db.asPlatform(), {
      debit: debtOf(ada.id),
      credit: 'processor',
      amount: 1n,
      currency: 'usd',
      cause: `reversal:${randomUUID()}`,
    });
    const { body, status } = await pay();
    expect([status, body]).toMatchObject([402, { success: false, code: 'CREDITS_DISPUTED' }]);
    expect([asked, await rows()]).toEqual([[], []]);
    expect((await pay({}, { by: await payer() })).status).toBe(200);
  });

  test.each(['X402_PAY_DAILY', 'X402_PAY_DAILY_TOTAL'])(
    'a payment is a 503 while %s is 0',
    async (name) => {
      const at = await webOver(gateway.url, { [name]: '0' });
      const { body, status } = await pay({}, { at });
      expect([status, body]).toEqual([
        503,
        { success: false, error: 'x402 payments are not enabled' },
      ]);
      expect([asked, await rows()]).toEqual([[], []]);
    },
  );

  test('payments are off in production, and bounded elsewhere, unless the settings change that', () => {
    const of = (env: Readonly<Record<string, string>>) =>
      readAreas({ x402: x402Settings }, env).x402;
    expect(of({ NODE_ENV: 'production' })).toEqual({ daily: 0n, dailyTotal: 0n });
    expect(of({})).toEqual({ daily: 500_000_000n, dailyTotal: 2_000_000_000n });
  });
});

describe('a repetition of a payment', () => {
  test('a repetition of a payment gets the first answer', attack, async () => {
    const key = randomUUID();
    await pay({}, { key });
    const { body, headers, status } = await pay({}, { key });
    expect([status, body]).toEqual([200, { transaction: '0x1' }]);
    expect(headers.get('idempotent-replayed')).toBe('true');
    expect(asked).toHaveLength(1);
    expect(await rows()).toHaveLength(1);
  });

  test(
    'is not sent once the first one was paid, even when its answer is forgotten',
    attack,
    async () => {
      const key = randomUUID();
      await pay({}, { key });
      await forgetAnswers();
      const { body, status } = await pay({}, { key });
      expect([status, body]).toMatchObject([409, { success: false, code: 'ANSWER_NOT_KEPT' }]);
      expect(asked).toHaveLength(1);
    },
  );

  test.each<[string, (response: ServerResponse) => unknown]>([
    ['unknown', (response) => response.destroy()],
    ['refused', (response) => json(response, 402, {})],
  ])('after the outcome %s is sent under the same key, and counts once', async (_name, how) => {
    const key = randomUUID();
    answer = how;
    await pay({ amount: 20 }, { key });
    answer = pays;
    expect((await pay({ amount: 20 }, { key })).status).toBe(200);
    expect(asked).toHaveLength(2);
    expect(new Set(asked.map((each) => each.key)).size).toBe(1);
    expect(await rows()).toMatchObject([{ state: 'paid', attempt: 2 }]);
    const details = (await audit(ada.id)).map(({ detail }) => detail);
    expect(details).toMatchObject([{ attempt: 1 }, { attempt: 1 }, { attempt: 2 }, { attempt: 2 }]);
  });

  test(
    'a repetition of a payment is refused while the first one is in flight, also when its key is free again',
    attack,
    async () => {
      const key = randomUUID();
      let proceed = () => undefined as unknown;
      answer = (response) => (proceed = () => pays(response));
      const first = pay({}, { key });
      await expect.poll(() => asked.length).toBe(1);
      await forgetAnswers();
      const { body, headers, status } = await pay({}, { key });
      expect([status, body]).toMatchObject([409, { success: false, code: 'REQUEST_IN_FLIGHT' }]);
      expect(Number(headers.get('retry-after'))).toBeLessThanOrEqual(120);
      proceed();
      expect((await first).status).toBe(200);
      expect(asked).toHaveLength(1);
    },
  );

  test('a repetition of a payment is sent after two minutes without an outcome', async () => {
    const key = randomUUID();
    answer = (response) => response.destroy();
    await pay({}, { key });
    await owner(
      `UPDATE x402_payments SET state = 'pending', sent_at = now() - interval '119 seconds'`,
    );
    expect((await pay({}, { key })).status).toBe(409);
    await owner(`UPDATE x402_payments SET sent_at = now() - interval '121 seconds'`);
    answer = pays;
    expect((await pay({}, { key })).status).toBe(200);
    expect(await states()).toEqual(['paid']);
  });

  test(
    'a repetition of a payment with other fields is a 422, however old the first one is',
    attack,
    async () => {
      const key = randomUUID();
      answer = (response) => json(response, 402, {});
      await pay({}, { key });
      for (const fields of [
        { amount: 6 },
        { currency: 'pathUSD' },
        { recipient: RECIPIENT.toLowerCase() },
        { endpoint: 'weather' },
        { method: 'stream' },
      ]) {
        await forgetAnswers();
        const { body, status } = await pay(fields, { key });
        expect([status, body]).toMatchObject([422, { code: 'IDEMPOTENCY_KEY_REUSED' }]);
      }
      expect(asked).toHaveLength(1);
    },
  );

  test(
    "a repetition of a payment has a row of its own for another user's same key",
    attack,
    async () => {
      const [key, bob] = [randomUUID(), await payer()];
      await pay({}, { key });
      expect((await pay({}, { key, by: bob })).status).toBe(200);
      expect(new Set(asked.map((each) => each.key)).size).toBe(2);
    },
  );
});

describe('the limits of a day', () => {
  const refused = async (fields: object, paying?: Paying) => {
    const { body, headers, status } = await pay(fields, paying);
    expect([status, headers.get('ratelimit-remaining')]).toEqual([429, '0']);
    return body;
  };

  test('the limits of a day refuse a payment above the limit of one user', async () => {
    await pay({ amount: 15 });
    expect(await refused({ amount: 5.000001 })).toEqual({
      success: false,
      error: expect.stringMatching(/^Your x402 payments/),
      current: '15.000000',
      limit: '20.000000',
    });
    expect((await pay({ amount: 5 })).status).toBe(200);
    expect((await pay({}, { by: await payer() })).status).toBe(200);
    expect(await notices()).toEqual([]);
  });

  test('the limits of a day refuse a payment above the limit of all users, and notify operators once', async () => {
    const [bob, eve] = [await payer(), await payer()];
    await pay({ amount: 20 });
    await pay({ amount: 20 }, { by: bob });
    expect(await notices()).toEqual([]);
    for (let n = 0; n < 2; n++) {
      expect(await refused({ amount: 11 }, { by: eve })).toMatchObject({
        error: expect.stringMatching(/^All users' x402 payments/),
        current: '40.000000',
        limit: '50.000000',
      });
    }
    expect(await notices()).toEqual([
      {
        event: 'x402_payments_used_up',
        day: new Date().toISOString().slice(0, 10),
        limit: '50.000000',
      },
    ]);
  });

  test('notify operators of a payment that reaches the sum of all users', async () => {
    for (const [amount, by] of [
      [20, ada],
      [20, await payer()],
      [10, await payer()],
    ] as const) {
      expect((await pay({ amount }, { by })).status).toBe(200);
    }
    expect(await notices()).toHaveLength(1);
  });

  test(
    'the limits of a day count unknown payments, but no payment that was refused or never sent',
    attack,
    async () => {
      answer = (response) => json(response, 402, {});
      await pay({ amount: 20 });
      await pay({ amount: 20 }, { at: await webOver('http://127.0.0.1:1') });
      answer = (response) => response.destroy();
      await pay({ amount: 20 });
      expect(await states()).toEqual(['refused', 'failed', 'unknown']);
      expect(await refused({ amount: 1 })).toMatchObject({ current: '20.000000' });
    },
  );

  test('the limits of a day count only payments of this UTC day', async () => {
    await pay({ amount: 20 });
    await owner(
      `UPDATE x402_payments SET sent_at = date_trunc('day', now(), 'UTC') - interval '1 s'`,
    );
    expect((await pay({ amount: 20 })).status).toBe(200);
  });

  test('the limits of a day count payments of deleted accounts for all users', attack, async () => {
    const [bob, eve] = [await payer(), await payer()];
    await pay({ amount: 20 });
    await pay({ amount: 20 }, { by: bob });
    await owner(`UPDATE x402_payments SET user_id = NULL`);
    expect(await refused({ amount: 11 }, { by: eve })).toMatchObject({ current: '40.000000' });
  });

  test(
    'the limits of a day admit exactly one of fifty concurrent payments for the last place',
    attack,
    async () => {
      await pay({ amount: 15 });
      const all = await Promise.all(Array.from({ length: 50 }, () => pay({ amount: 5 })));
      const of = (wanted: number) => all.filter(({ status }) => status === wanted).length;
      expect([of(200), of(429)]).toEqual([1, 49]);
      expect(asked).toHaveLength(2);
      expect(await rows()).toHaveLength(2);
    },
  );

  test(
    'the limits of a day admit exactly the remaining amount of all users for fifty concurrent payments of many users',
    attack,
    async () => {
      const payers = await Promise.all(Array.from({ length: 10 }, payer));
      const wanted = Array.from({ length: 50 }, (_, n) =>
        pay({ amount: 3 }, { by: payers[n % 10] }),
      );
      const of = (await Promise.all(wanted)).filter(({ status }) => status === 200);
      expect(of).toHaveLength(16);
      expect(await notices()).toHaveLength(1);
    },
  );

  test(
    'a payment with one key is sent once for any number of concurrent requests',
    attack,
    async () => {
      const key = randomUUID();
      const all = await Promise.all(Array.from({ length: 20 }, () => pay({}, { key })));
      expect(asked).toHaveLength(1);
      expect(
        all.map(({ status }) => status).filter((status) => ![200, 409].includes(status)),
      ).toEqual([]);
    },
  );
});

describe('a payment without an outcome', () => {
  const abandon = async (seconds: number) => {
    await pay();
    await owner(
      `UPDATE x402_payments SET state = 'pending', ended_at = NULL,
              sent_at = now() - interval '${seconds} seconds'`,
    );
  };

  test('a payment without an outcome is unknown after two minutes, with an audit line', async () => {
    await abandon(119);
    expect(await endUnanswered(database.db.asPlatform())).toBe(0);
    await abandon(121);
    expect(await endUnanswered(database.db.asPlatform())).toBe(2);
    expect(await states()).toEqual(['unknown', 'unknown']);
    expect((await audit(ada.id)).at(-1)).toMatchObject({
      action: 'x402.outcome',
      detail: { outcome: 'unknown', attempt: 1 },
    });
  });

  test('a payment without an outcome is ended by a worker', async () => {
    await abandon(121);
    const stop = new AbortController();
    const log = pino({ level: 'silent' });
    const running = endX402PaymentsPeriodically({ database: database.db, log }, stop.signal);
    await expect.poll(states).toEqual(['unknown']);
    stop.abort();
    await running;
  });

  test('a payment without an outcome accepts a later outcome', async () => {
    let proceed = () => undefined as unknown;
    answer = (response) => (proceed = () => pays(response));
    const paying = pay();
    await expect.poll(() => asked.length).toBe(1);
    await owner(`UPDATE x402_payments SET sent_at = now() - interval '121 seconds'`);
    await endUnanswered(database.db.asPlatform());
    proceed();
    expect((await paying).status).toBe(200);
    expect(await states()).toEqual(['paid']);
  });
});

test(
  "a hanging gateway delays no other request, also of the gateway's own callers",
  attack,
  async () => {
    const unanswered: ServerResponse[] = [];
    answer = (response) => unanswered.push(response);
    const payers = await Promise.all(Array.from({ length: 20 }, payer));
    let ended = 0;
    const client = new AbortController();
    const hanging = payers.map((by) =>
      pay({ amount: 1 }, { by, signal: client.signal }).finally(() => (ended += 1)),
    );
    await expect.poll(() => asked.length).toBe(20);
    answer = pays;
    const answers = await Promise.all([
      call(web.url, 'GET', '/api/auth/session', { headers: { cookie: ada.cookie } }),
      call(web.url, 'GET', '/api/agents', { headers: { cookie: ada.cookie } }),
      pay(),
    ]);
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
    expect(ended).toBe(0);
    client.abort();
    await Promise.allSettled(hanging);
    for (const response of unanswered) response.destroy();
    await expect.poll(async () => (await states()).includes('pending')).toBe(false);
  },
);
