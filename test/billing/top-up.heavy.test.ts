import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { Processor } from '../../src/billing/processor.js';
import { ProcessorEvents } from '../../src/billing/receive-events.js';
import { queryRows } from '../platform/database/catalog.js';
import { textsOfRows } from '../platform/database/traces.js';
import { walletSite, type Person } from '../money/wallets/support.js';
import { billingSite, type BillingSite } from './support.js';

const attack = { tags: 'attack' };

const TOP_UP = '/api/wallet/top-up';

let site: BillingSite;
let ada: Person;

beforeAll(async () => {
  site = await billingSite();
});
beforeEach(async () => {
  ada = await site.person();
});
afterAll(() => site?.close());

const start = async (person: Person, query = '') =>
  (await site.web(person, 'GET', `${TOP_UP}${query}`)).body.sessionId as string;

const notices = async () =>
  queryRows<{ event: unknown }>(site.database.ownerUrl, 'SELECT event FROM pending_notifications');

describe('purchase of credits', () => {
  test('a purchase of credits is credited after the payment, and listed', async () => {
    const { status, body } = await site.web(ada, 'GET', TOP_UP);
    expect(status).toBe(200);
    expect(body.url).toBe(site.processor.sessions.get(body.sessionId)?.url);
    expect(await site.moneyOf(ada)).toMatchObject({ credits: '0.000000' });
    site.processor.pay(body.sessionId);
    await site.catchUp();
    const credits = await site.web(ada, 'GET', '/api/credits');
    expect(credits.body).toMatchObject({
      balance: '10.000000',
      held: '0.000000',
      currency: 'USD',
      entries: [{ amount: '10.000000', reason: 'checkout' }],
    });
    const settings = await site.web(ada, 'GET', '/api/settings');
    expect(settings.body.user.credits).toBe('10.000000');
  });

  test('sends the browser to the page of the processor', async () => {
    const answer = await site.web(ada, 'GET', '/api/payproc/credits?price=credits-2500');
    expect(answer.status).toBe(303);
    const location = answer.headers.get('location');
    const made = [...site.processor.sessions.values()].find(({ url }) => url === location);
    expect(made).toMatchObject({ amount_total: 2_500, currency: 'usd', mode: 'payment' });
    expect(made?.success_url).toMatch(/\/dashboard\?done=credits-bought$/);
  });

  test('a purchase of credits is started by the action buy-credits, and needs a price on sale', async () => {
    const act = (body: object) => site.web(ada, 'POST', '/api/billing', { body });
    const bought = await act({ action: 'buy-credits', price: 'credits-5000' });
    expect([bought.status, Object.keys(bought.body).sort()]).toEqual([200, ['sessionId', 'url']]);
    expect(site.processor.sessions.get(bought.body.sessionId)?.amount_total).toBe(5_000);
    for (const price of [undefined, 'solo']) {
      const { body, status } = await act({ action: 'buy-credits', price });
      expect([status, body.error]).toEqual([400, 'Invalid price']);
    }
  });

  test.each(['', '?price=', '?price=credits-501', '?price=solo'])(
    'refuses the price of /api/payproc/credits%s',
    async (query) => {
      const { status, body } = await site.web(ada, 'GET', `/api/payproc/credits${query}`);
      expect([status, body.error]).toEqual([400, 'Invalid price']);
    },
  );

  test.each(['0', '501', '1000.0', '-500', '1e3', ''])(
    'refuses the amount %s and stores nothing',
    async (amount) => {
      const { status } = await site.web(ada, 'GET', `${TOP_UP}?amount=${amount}`);
      expect(status).toBe(400);
      const rows = await site.database.db.asUser(ada.id).query('SELECT FROM checkouts');
      expect(rows).toEqual([]);
    },
  );

  test('a purchase of credits needs a session: an API key is refused', async () => {
    const key = await site.web(ada, 'POST', '/api/keys', { body: { name: 'ci' } });
    const headers = { authorization: `Bearer ${key.body.key}` };
    for (const path of [TOP_UP, '/api/payproc/credits?price=credits-500']) {
      expect((await site.web(undefined, 'GET', path, { headers })).status).toBe(403);
      expect((await site.web(undefined, 'GET', path)).status).toBe(401);
    }
    expect((await site.web(undefined, 'GET', '/api/credits', { headers })).status).toBe(200);
  });

  test(
    'a purchase of credits is limited to thirty checkouts a minute for each user',
    attack,
    async () => {
      const statuses = [];
      for (let n = 0; n < 31; n += 1) statuses.push((await site.web(ada, 'GET', TOP_UP)).status);
      expect(statuses).toEqual([...Array<number>(30).fill(200), 429]);
      expect((await site.web(await site.person(), 'GET', TOP_UP)).status).toBe(200);
    },
  );

  test('answers 500 while the processor is down, and leaves no checkout that charges', async () => {
    const before = site.processor.sessions.size;
    site.processor.down = 503;
    const { status, body } = await site.web(ada, 'GET', TOP_UP);
    site.processor.down = undefined;
    expect([status, body.error]).toEqual([
      500,
      'The payment processor created no checkout: retry later',
    ]);
    expect(site.processor.sessions.size).toBe(before);
  });

  test('answers 500 while no processor is configured', async () => {
    const bare = await walletSite();
    try {
      const eve = await bare.person();
      expect((await bare.web(eve, 'GET', TOP_UP)).status).toBe(500);
      const signed = site.processor.signed({ id: 'evt_1' });
      expect((await bare.web(undefined, 'POST', TOP_UP, signed)).status).toBe(500);
    } finally {
      await bare.close();
    }
  });
});

describe('webhook', () => {
  const now = () => Math.floor(Date.now() / 1_000);
  const paidEvent = async () => {
    site.processor.pay(await start(ada));
    return site.processor.events.at(-1) as object;
  };
  const post = async (body: string, headers: Readonly<Record<string, string>>) => {
    const answer = await site.web(undefined, 'POST', TOP_UP, { body, headers });
    return [answer.status, answer.body.error ?? answer.body.received];
  };
  const stored = () => site.database.db.asPlatform().query('SELECT FROM processor_events');

  test('answers 200 once the event is stored', async () => {
    const { body, headers } = site.processor.signed(await paidEvent());
    expect(await post(body, headers)).toEqual([200, true]);
    expect(await site.moneyOf(ada)).toMatchObject({ credits: '0.000000' });
    await site.apply();
    expect(await site.moneyOf(ada)).toMatchObject({ credits: '10.000000' });
  });

  test('refuses forged, old and future signatures, and stores nothing', attack, async () => {
    const event = await paidEvent();
    const { body, headers } = site.processor.signed(event);
    const signature = headers['stripe-signature'] ?? '';
    const json = { 'content-type': 'application/json' };
    const forged = [
      { body, headers: json },
      { body: `${body} `, headers },
      { body: body.replace('1000', '9000'), headers },
      { body, headers: { ...json, 'stripe-signature': signature.replace(/.$/, 'x') } },
      { body, headers: { ...json, 'stripe-signature': `t=${now()}` } },
      { body, headers: { ...json, 'stripe-signature': `t=1,${signature}` } },
      { body, headers: { ...json, 'stripe-signature': 'garbage' } },
      { body: '', headers },
      site.processor.signed(event, now() - 310),
      site.processor.signed(event, now() + 310),
    ];
    const before = await stored();
    for (const each of forged) {
      expect(await post(each.body, each.headers)).toEqual([400, 'Invalid signature']);
    }
    expect(await stored()).toHaveLength(before.length);
    for (const at of [now() - 290, now() + 290]) {
      const timely = site.processor.signed(event, at);
      expect(await post(timely.body, timely.headers)).toEqual([200, true]);
    }
  });

  test('accepts the old and the new secret while the secret is changed', async () => {
    const { PAYPROC_WEBHOOK_SECRET: secret = '' } = site.processor.env;
    const event = await paidEvent();
    for (const secrets of [`whsec_other,${secret}`, `${secret},whsec_other`, 'whsec_other']) {
      const other = await walletSite({ ...site.processor.env, PAYPROC_WEBHOOK_SECRET: secrets });
      const answer = await other.web(undefined, 'POST', TOP_UP, site.processor.signed(event));
      await other.close();
      expect(answer.status).toBe(secrets.includes(secret) ? 200 : 400);
    }
  });

  test('refuses a body over one MiB', attack, async () => {
    const event = { ...(await paidEvent()), filling: 'x'.repeat(1024 * 1024) };
    expect((await site.deliver(event)).status).toBe(413);
  });

  test('answers 200 to a signed event that needs no action, and stores nothing', async () => {
    const before = await stored();
    const object = { id: 'cus_1', object: 'customer' };
    const event = { id: 'evt_none', type: 'customer.created', created: now(), data: { object } };
    expect((await site.deliver(event)).status).toBe(200);
    expect(await stored()).toHaveLength(before.length);
  });

  test('credits once, however often and under however many ids the payment is reported', async () => {
    const event = await paidEvent();
    const others = ['checkout.session.completed', 'checkout.session.async_payment_succeeded'].map(
      (type, n) => ({ ...event, id: `evt_other_${ada.id.slice(0, 8)}_${n}`, type }),
    );
    const twenty = Array.from({ length: 20 }, () => event);
    const answers = await Promise.all([...twenty, ...others].map((each) => site.deliver(each)));
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
    await Promise.all([site.apply(), site.apply()]);
    expect(await site.moneyOf(ada)).toEqual({ credits: '10.000000', debt: '0.000000' });
  });

  test('stores each event once when two processes receive the same ones in opposite order', async () => {
    const event = await paidEvent();
    const events = Array.from({ length: 50 }, (_, n) => ({ ...event, id: `evt_in_order_${n}` }));
    const { database, settings } = site.dependencies;
    const receive = (order: readonly object[]) => {
      const receiver = new ProcessorEvents(database, new Processor(settings.billing));
      return order.map((each) => {
        const { body, headers } = site.processor.signed(each);
        return receiver.receive(Buffer.from(body), headers['stripe-signature']);
      });
    };
    await Promise.all([...receive(events), ...receive(events.toReversed())]);
    const rows = await database
      .asPlatform()
      .query(`SELECT FROM processor_events WHERE starts_with(event_id, 'evt_in_order_')`);
    expect(rows).toHaveLength(50);
  });

  test('stores no personal data of the buyer', attack, async () => {
    await site.deliver(await paidEvent());
    const rows = await textsOfRows(site.database.db.asPlatform());
    expect(rows.filter((row) => row.includes('buyer@example.com'))).toEqual([]);
  });

  test('leaves no key and no secret in the log', attack, () => {
    expect(site.logged.length).toBeGreaterThan(0);
    const { PAYPROC_SECRET_KEY: key = '', PAYPROC_WEBHOOK_SECRET: secret = '' } =
      site.processor.env;
    const lines = site.logged.filter((line) => line.includes(key) || line.includes(secret));
    expect(lines).toEqual([]);
  });

  test.each([
    ['not paid', { payment_status: 'unpaid' }],
    ['of another amount', { amount_total: 999 }],
    ['in another currency', { currency: 'gbp' }],
    ['of a checkout made elsewhere', { client_reference_id: null }],
    ['of an unknown checkout', { client_reference_id: 'unknown' }],
    ['of another checkout of the same id', { id: 'cs_test_other' }],
  ])(
    'credits no account for a payment %s, and notifies operators once',
    attack,
    async (_, changed) => {
      await site.apply();
      await queryRows(site.database.ownerUrl, 'DELETE FROM pending_notifications');
      const event = (await paidEvent()) as { data: { object: object } };
      const object = { ...event.data.object, ...changed };
      for (const n of [1, 2]) {
        await site.deliver({ ...event, id: `evt_${ada.id.slice(0, 8)}_${n}`, data: { object } });
        await site.apply();
      }
      expect(await site.moneyOf(ada)).toEqual({ credits: '0.000000', debt: '0.000000' });
      expect(await notices()).toMatchObject([{ event: { event: 'payment_unmatched' } }]);
    },
  );

  test('credits a payment that arrives after the checkout was completed without it', async () => {
    const sessionId = await start(ada);
    const pending = { ...site.processor.sessions.get(sessionId), payment_status: 'unpaid' };
    const at = { created: now(), type: 'checkout.session.completed' };
    await site.deliver({
      ...at,
      id: `evt_pending_${ada.id.slice(0, 8)}`,
      data: { object: pending },
    });
    await site.apply();
    expect(await site.moneyOf(ada)).toMatchObject({ credits: '0.000000' });
    site.processor.pay(sessionId);
    const paid = { object: site.processor.sessions.get(sessionId) };
    const type = 'checkout.session.async_payment_succeeded';
    await site.deliver({ id: `evt_paid_${ada.id.slice(0, 8)}`, type, created: now(), data: paid });
    await site.apply();
    expect(await site.moneyOf(ada)).toMatchObject({ credits: '10.000000' });
  });

  test('books a payment of a deleted account, and changes nothing else', async () => {
    const event = await paidEvent();
    await queryRows(site.database.ownerUrl, `DELETE FROM users WHERE id = '${ada.id}'`);
    await site.deliver(event);
    await site.apply();
    expect(await site.moneyOf(ada)).toMatchObject({ credits: '10.000000' });
  });
});
