import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { grantPlan } from '../../src/accounts/accounts/subscriptions.js';
import type { Person } from '../money/wallets/support.js';
import { walletSite } from '../money/wallets/support.js';
import { queryRows } from '../platform/database/catalog.js';
import { billingSite, type BillingSite } from './support.js';

const attack = { tags: 'attack' };

let site: BillingSite;
let ada: Person;

beforeAll(async () => {
  site = await billingSite();
});
beforeEach(async () => {
  ada = await site.person();
});
afterAll(() => site?.close());

const checkout = (person: Person, plan: unknown = 'solo') =>
  site.web(person, 'POST', '/api/billing', { body: { action: 'create-checkout', plan } });

const visit = (person: Person, query = '?plan=solo') =>
  site.web(person, 'GET', `/api/payproc/checkout${query}`);

const billing = async (person = ada) => (await site.web(person, 'GET', '/api/billing')).body;

const subscriptionOf = (id: string) => {
  const found = site.processor.subscriptions.all.get(id);
  if (!found) throw new Error(`There is no subscription ${id}`);
  return found;
};

const rows = (person = ada) =>
  queryRows<{ id: string; ended: boolean }>(
    site.database.ownerUrl,
    `SELECT id, session_id, ended_at IS NOT NULL AS ended FROM subscription_checkouts
      WHERE user_id = '${person.id}' ORDER BY created_at`,
  );

const notices = () =>
  queryRows<{ event: { event: string; subscriptionId: string } }>(
    site.database.ownerUrl,
    'SELECT event FROM pending_notifications',
  );

describe('purchase of a plan', () => {
  test('grants the plan once it is paid', async () => {
    const { status, body } = await checkout(ada);
    expect(status).toBe(200);
    const session = site.processor.sessions.get(body.sessionId);
    expect(session).toMatchObject({
      url: body.url,
      mode: 'subscription',
      amount_total: 7_900,
      currency: 'gbp',
    });
    expect(await billing()).toMatchObject({ plan: null, status: 'none' });
    const id = site.processor.pay(body.sessionId);
    await site.catchUp();
    expect(await billing()).toMatchObject({
      plan: 'solo',
      status: 'active',
      source: 'processor',
      periodEnd: new Date(subscriptionOf(id).periodEnd * 1_000).toISOString(),
    });
    expect(await rows()).toMatchObject([{ ended: true }]);
  });

  test.each([
    ['label', 2_900],
    ['solo', 7_900],
    ['collective', 19_900],
    ['network', 49_900],
  ])('leads the browser to the page that sells %s', async (plan, pence) => {
    const { headers, status } = await visit(ada, `?plan=${plan}`);
    expect(status).toBe(303);
    const location = headers.get('location');
    const made = [...site.processor.sessions.values()].find(({ url }) => url === location);
    expect(made).toMatchObject({ mode: 'subscription', amount_total: pence, currency: 'gbp' });
    expect(made?.success_url).toMatch(/\/dashboard\?done=plan-bought$/);
    expect(made?.cancel_url).toMatch(/\/dashboard\?done=plan-not-bought$/);
  });

  test.each(['', '?plan=', '?plan=free', '?plan=10gb', '?plan=SOLO', '?plan=toString'])(
    'refuses the plan of /api/payproc/checkout%s, and stores nothing',
    async (query) => {
      const { body, status } = await visit(ada, query);
      expect([status, body.error]).toEqual([400, 'Invalid plan']);
      expect(await rows()).toEqual([]);
    },
  );

  test.each([null, 'free', '10gb', 7])('refuses to create a checkout of %j', async (plan) => {
    const { body, status } = await checkout(ada, plan);
    expect([status, body.error]).toEqual([400, 'Invalid plan']);
  });

  test('the purchase of a plan needs a session: an API key is refused', async () => {
    const key = await site.web(ada, 'POST', '/api/keys', { body: { name: 'ci' } });
    const headers = { authorization: `Bearer ${key.body.key}` };
    const path = '/api/payproc/checkout?plan=solo';
    expect((await site.web(undefined, 'GET', path, { headers })).status).toBe(403);
    expect((await site.web(undefined, 'GET', path)).status).toBe(401);
  });

  test('the purchase of a plan is limited to thirty a minute for each user', attack, async () => {
    const statuses = [];
    for (let n = 0; n < 31; n += 1) statuses.push((await visit(ada)).status);
    expect(statuses).toEqual([...Array<number>(30).fill(303), 429]);
    expect((await visit(await site.person())).status).toBe(303);
  });

  test('answers 500 while the processor is down, and leaves no checkout that charges', async () => {
    const before = site.processor.sessions.size;
    site.processor.down = 503;
    const answers = [await checkout(ada), await visit(ada)];
    site.processor.down = undefined;
    for (const { body, status } of answers) {
      expect([status, body.error]).toEqual([
        500,
        'The payment processor created no checkout: retry later',
      ]);
    }
    expect(site.processor.sessions.size).toBe(before);
  });

  test('answers 500 while no processor is configured', async () => {
    const bare = await walletSite();
    try {
      const eve = await bare.person();
      const path = '/api/payproc/checkout?plan=solo';
      expect((await bare.web(eve, 'GET', path)).status).toBe(500);
    } finally {
      await bare.close();
    }
  });

  test('expires the open checkout of its kind', async () => {
    const [first, second] = [await checkout(ada), await checkout(ada, 'network')];
    expect(site.processor.sessions.get(first.body.sessionId)?.status).toBe('expired');
    expect(site.processor.sessions.get(second.body.sessionId)?.status).toBe('open');
    expect(await rows()).toMatchObject([{ ended: true }, { ended: false }]);
  });

  test('reads a checkout that was paid just now, and sells no second plan', async () => {
    const { body } = await checkout(ada);
    site.processor.pay(body.sessionId);
    const again = await checkout(ada, 'network');
    expect([again.status, again.body.sessionId]).toEqual([200, null]);
    expect(await billing()).toMatchObject({ plan: 'solo' });
  });

  test('uses the price that is configured', async () => {
    const form = new URLSearchParams({ unit_amount: '9900', currency: 'gbp' });
    const price = site.processor.subscriptions.addPrice(form).id;
    const other = await walletSite({ ...site.processor.env, PAYPROC_PRICE_NETWORK: price });
    try {
      const eve = await other.person();
      const { headers } = await other.web(eve, 'GET', '/api/payproc/checkout?plan=network');
      const location = headers.get('location');
      const made = [...site.processor.sessions.values()].find(({ url }) => url === location);
      expect(made).toMatchObject({ amount_total: 9_900 });
    } finally {
      await other.close();
    }
  });

  test('leaves the plan that the operator granted', async () => {
    await grantPlan(site.database.db, ada.id, 'solo', { actor: 'operator', requestId: 'r' });
    const id = await site.subscribe(ada, 'network');
    expect(await billing()).toMatchObject({ plan: 'network', source: 'processor' });
    site.processor.subscriptions.cancel(id);
    await site.catchUp();
    expect(await billing()).toMatchObject({ plan: 'solo', source: 'operator', status: 'active' });
  });
});

test('a subscription of a checkout made elsewhere grants no plan', attack, async () => {
  const { body } = await checkout(ada);
  const session = site.processor.sessions.get(body.sessionId);
  if (!session) throw new Error('There is no checkout');
  const price = site.processor.subscriptions.addPrice(
    new URLSearchParams({ unit_amount: '7900', currency: 'gbp' }),
  );
  const elsewhere: Record<string, string>[] = [{}, { checkoutId: 'made-elsewhere' }];
  for (const metadata of elsewhere) {
    site.processor.subscriptions.begin({ ...session, metadata }, price);
  }
  await site.catchUp();
  expect(await billing()).toMatchObject({ plan: null, status: 'none' });
  const outcomes = await queryRows(
    site.database.ownerUrl,
    `SELECT DISTINCT outcome FROM processor_events
      WHERE type = 'customer.subscription.created' ORDER BY 1`,
  );
  expect(outcomes).toContainEqual({ outcome: 'unmatched' });
  // Subscriptions of another product of the operator are no concern of ours.
  const reported = (await notices()).filter(
    ({ event }) => event.event === 'subscription_unmatched',
  );
  expect(reported).toHaveLength(1);
});

describe("a plan's owner", () => {
  const confirm = (url: string, action: string) =>
    fetch(url, { method: 'POST', body: new URLSearchParams({ action }), redirect: 'manual' });

  test("a plan's owner is redirected to the processor's page for changes, by GET and by POST", async () => {
    const id = await site.subscribe(ada);
    const sessions = site.processor.sessions.size;
    const answer = await checkout(ada, 'network');
    expect([answer.status, answer.body.sessionId]).toEqual([200, null]);
    const visited = await visit(ada, '?plan=network');
    expect(visited.status).toBe(303);
    for (const url of [answer.body.url, visited.headers.get('location')]) {
      const page = await (await fetch(url)).text();
      expect(page).toContain('Change to 499.00 GBP a month');
    }
    await site.catchUp();
    expect(site.processor.sessions.size).toBe(sessions);
    expect(subscriptionOf(id).price.unit_amount).toBe(7_900);
    expect(await billing()).toMatchObject({ plan: 'solo' });
  });

  test("a plan's owner has the higher plan once its invoice is paid", async () => {
    const id = await site.subscribe(ada);
    const { body } = await checkout(ada, 'network');
    const failed = await confirm(body.url, 'change-unpaid');
    expect(failed.headers.get('location')).toMatch(/\/dashboard\?done=plan-changed$/);
    await site.catchUp();
    expect(subscriptionOf(id).price.unit_amount).toBe(49_900);
    expect(await billing()).toMatchObject({ plan: 'solo', status: 'past_due' });
    site.processor.subscriptions.pay(id);
    await site.catchUp();
    expect(await billing()).toMatchObject({ plan: 'network', status: 'active' });
  });

  test(
    "a plan's owner gets no higher plan by a second change without a payment",
    attack,
    async () => {
      const id = await site.subscribe(ada);
      const network = await checkout(ada, 'network');
      const collective = await checkout(ada, 'collective');
      await confirm(network.body.url, 'change-unpaid');
      await confirm(collective.body.url, 'change');
      subscriptionOf(id).status = 'active';
      await site.catchUp();
      expect(subscriptionOf(id).price.unit_amount).toBe(19_900);
      expect(await billing()).toMatchObject({ plan: 'solo' });
      site.processor.subscriptions.pay(id);
      await site.catchUp();
      expect(await billing()).toMatchObject({ plan: 'collective', status: 'active' });
    },
  );

  test("a plan's owner has a lower plan as soon as the change is confirmed", async () => {
    await site.subscribe(ada, 'network');
    const { body } = await checkout(ada, 'label');
    await confirm(body.url, 'change');
    await site.catchUp();
    expect(await billing()).toMatchObject({ plan: 'label', status: 'active' });
  });

  test('pays and cancels the same plan at the processor', async () => {
    const id = await site.subscribe(ada);
    const { body } = await checkout(ada);
    expect(body.sessionId).toBeNull();
    const page = await (await fetch(body.url)).text();
    expect(page).toContain('Cancel at the end of the period');
    expect(page).not.toContain('Change to');
    await confirm(body.url, 'end');
    await site.catchUp();
    const periodEnd = new Date(subscriptionOf(id).periodEnd * 1_000);
    expect(await billing()).toMatchObject({
      plan: 'solo',
      status: 'active',
      periodEnd: periodEnd.toISOString(),
    });
    // No grace follows: the plan is not unpaid.
    const [row] = await queryRows(
      site.database.ownerUrl,
      `SELECT holds_until FROM subscriptions WHERE processor_id = '${id}'`,
    );
    expect(row).toEqual({ holds_until: periodEnd });
  });

  test("a plan's owner is redirected to the payment while the plan is unpaid", async () => {
    const id = await site.subscribe(ada);
    site.processor.subscriptions.renew(id, false);
    await site.catchUp();
    const { body } = await checkout(ada, 'network');
    expect(await (await fetch(body.url)).text()).toContain('Pay what is open');
  });

  test('buys a plan again after the end', async () => {
    const id = await site.subscribe(ada);
    site.processor.subscriptions.cancel(id);
    await site.catchUp();
    await site.subscribe(ada, 'label');
    expect(await billing()).toMatchObject({ plan: 'label', status: 'active' });
  });
});

describe('state of a plan', () => {
  const DAY_S = 86_400;

  beforeEach(() =>
    queryRows(
      site.database.ownerUrl,
      `UPDATE users SET email_verified_at = now() WHERE id = '${ada.id}'`,
    ),
  );

  const mails = () =>
    queryRows(
      site.database.ownerUrl,
      `SELECT kind FROM mails WHERE user_id = '${ada.id}' AND kind = 'plan-ended'`,
    );

  test('a plan holds for seven days from the start of the unpaid period', async () => {
    const id = await site.subscribe(ada);
    const { subscriptions } = site.processor;
    subscriptions.renew(id, false);
    await site.catchUp();
    expect(await billing()).toMatchObject({ plan: 'solo', status: 'past_due' });
    expect(await mails()).toEqual([]);
    // The oldest unpaid invoice counts, however many follow.
    for (const invoice of subscriptions.openInvoices(id)) invoice.created -= 7 * DAY_S - 60;
    subscriptions.renew(id, false);
    await site.catchUp();
    expect(await billing()).toMatchObject({ plan: 'solo', status: 'past_due' });
    const [oldest] = subscriptions.openInvoices(id);
    if (oldest) oldest.created -= 120;
    subscriptions.renew(id, false);
    await site.catchUp();
    expect(await billing()).toMatchObject({ plan: null, status: 'ended' });
    expect(await mails()).toHaveLength(1);
    subscriptions.pay(id);
    await site.catchUp();
    expect(await billing()).toMatchObject({ plan: 'solo', status: 'active' });
    subscriptions.giveUp(id);
    await site.catchUp();
    expect(await mails()).toHaveLength(2);
  });

  test.each(['canceled', 'unpaid', 'paused'])(
    'a plan ends when it is %s, with one mail',
    async (status) => {
      const id = await site.subscribe(ada);
      subscriptionOf(id).status = status;
      site.processor.subscriptions.renew(id, true);
      await site.catchUp();
      expect(await billing()).toMatchObject({ plan: null, status: 'ended', source: 'processor' });
      site.processor.subscriptions.renew(id, true);
      await site.catchUp();
      expect(await mails()).toHaveLength(1);
    },
  );

  test.each(['incomplete', 'incomplete_expired', 'a-later-version'])(
    'a plan does not begin while it is %s',
    async (status) => {
      const { body } = await checkout(ada);
      const id = site.processor.pay(body.sessionId);
      subscriptionOf(id).status = status;
      await site.catchUp();
      expect(await billing()).toMatchObject({ plan: null, status: 'none' });
      expect(await mails()).toEqual([]);
      subscriptionOf(id).status = 'trialing';
      site.processor.subscriptions.renew(id, true);
      await site.catchUp();
      expect(await billing()).toMatchObject({ plan: 'solo', status: 'active' });
    },
  );

  test('keeps the plan whose price is not configured any more', async () => {
    const id = await site.subscribe(ada, 'collective');
    const former = new URLSearchParams({ unit_amount: '12345', currency: 'gbp' });
    site.processor.subscriptions.change(id, site.processor.subscriptions.addPrice(former).id, true);
    await site.catchUp();
    expect(await billing()).toMatchObject({ plan: 'collective', status: 'active' });
  });

  test('the state of a plan is the one that was read last, although an earlier answer arrives later', async () => {
    const id = await site.subscribe(ada);
    const held = site.processor.holdAnswers();
    site.processor.subscriptions.renew(id, true);
    const early = site.catchUp();
    await held.arrival;
    site.processor.subscriptions.cancel(id);
    await site.catchUp();
    held.release();
    await early;
    expect(await billing()).toMatchObject({ plan: null, status: 'ended' });
  });
});

describe('a second plan', () => {
  /** Buys a plan in each of two tabs. */
  const buyTwice = async (person: Person) => {
    const first = await checkout(person);
    const second = await checkout(person, 'network');
    // Both pages were open at the same time.
    const session = site.processor.sessions.get(first.body.sessionId);
    if (!session) throw new Error('There is no checkout');
    (site.processor.sessions as Map<string, typeof session>).set(session.id, {
      ...session,
      status: 'open',
    });
    const kept = site.processor.pay(first.body.sessionId);
    const other = site.processor.pay(second.body.sessionId);
    subscriptionOf(other).created += 1;
    return { kept, other };
  };

  test.each([1, -1])(
    'a second plan is refunded and cancelled, with a notice to operators (order %d)',
    async (order) => {
      const { kept, other } = await buyTwice(ada);
      const events = [...site.processor.events];
      for (const event of order === 1 ? events : events.toReversed()) {
        await site.deliver(event);
        await site.apply();
      }
      await site.catchUp();
      expect(subscriptionOf(kept).status).toBe('active');
      expect(subscriptionOf(other).status).toBe('canceled');
      expect(await billing()).toMatchObject({ plan: 'solo', status: 'active' });
      const refunds = site.processor.events.filter(({ type }) => type === 'charge.refunded');
      const amounts = refunds.map(({ data }) => (data.object as { amount: number }).amount);
      expect(amounts.slice(-1)).toEqual([49_900]);
      expect((await notices()).map(({ event }) => event)).toContainEqual({
        event: 'second_plan',
        subscriptionId: other,
      });
      expect((await notices()).filter(({ event }) => event.subscriptionId === other)).toHaveLength(
        1,
      );
    },
  );

  test('a second plan is refunded once, although the processor is unavailable in between', async () => {
    const { other } = await buyTwice(ada);
    await site.catchUp();
    const of = (type: string) => site.processor.events.filter((each) => each.type === type).length;
    const refunds = of('charge.refunded');
    // As after a crash: the end is not in the row.
    await queryRows(
      site.database.ownerUrl,
      `UPDATE subscriptions SET status = 'active', read_at = NULL WHERE processor_id = '${other}'`,
    );
    site.processor.subscriptions.renew(other, true);
    subscriptionOf(other).status = 'active';
    await site.catchUp();
    await site.catchUp();
    expect(subscriptionOf(other).status).toBe('canceled');
    // The month that was renewed has a payment of its own.
    expect(of('charge.refunded')).toBe(refunds + 1);
  });
});

describe('a reversed payment of a plan', () => {
  const paymentOf = (id: string) =>
    site.processor.subscriptions.invoices.get(subscriptionOf(id).latestInvoice)?.payment ?? '';

  test('ends the plan if it is refunded in full', async () => {
    const id = await site.subscribe(ada);
    site.processor.refund(paymentOf(id), 900);
    await site.catchUp();
    expect(await billing()).toMatchObject({ plan: 'solo' });
    site.processor.refund(paymentOf(id), 7_000);
    await site.catchUp();
    await site.catchUp();
    expect(subscriptionOf(id).status).toBe('canceled');
    expect(await billing()).toMatchObject({ plan: null, status: 'ended' });
    expect(await site.moneyOf(ada)).toEqual({ credits: '0.000000', debt: '0.000000' });
  });

  test('ends the plan if a dispute is lost', async () => {
    const id = await site.subscribe(ada);
    site.processor.dispute(paymentOf(id), 'needs_response');
    await site.catchUp();
    expect(await billing()).toMatchObject({ plan: 'solo' });
    site.processor.dispute(paymentOf(id), 'lost');
    await site.catchUp();
    expect(await billing()).toMatchObject({ plan: null, status: 'ended' });
  });

  test('leaves a subscription of another product unchanged', attack, async () => {
    const { body } = await checkout(ada);
    const session = site.processor.sessions.get(body.sessionId);
    if (!session) throw new Error('There is no checkout');
    const { subscriptions } = site.processor;
    const form = new URLSearchParams({ unit_amount: '7900', currency: 'gbp' });
    const { id } = subscriptions.begin({ ...session, metadata: {} }, subscriptions.addPrice(form));
    site.processor.refund(paymentOf(id), 7_900);
    await site.catchUp();
    expect(subscriptionOf(id).status).toBe('active');
  });
});

test('an event about a plan of a deleted account is stored, and changes nothing', async () => {
  const id = await site.subscribe(ada);
  await queryRows(site.database.ownerUrl, `DELETE FROM users WHERE id = '${ada.id}'`);
  site.processor.subscriptions.renew(id, true);
  await site.catchUp();
  const open = await queryRows(
    site.database.ownerUrl,
    'SELECT FROM processor_events WHERE applied_at IS NULL',
  );
  expect(open).toEqual([]);
  const row = `SELECT FROM subscriptions WHERE processor_id = '${id}'`;
  expect(await queryRows(site.database.ownerUrl, row)).toEqual([]);
  expect(subscriptionOf(id).status).toBe('active');
});

test('an agent continues after the end of a plan, and none starts', async () => {
  const id = await site.subscribe(ada);
  const agent = await site.agentOf(ada);
  const start = () => site.backend(ada, 'POST', `/api/agents/${agent}/start`);
  expect((await start()).status).not.toBe(402);
  site.processor.subscriptions.cancel(id);
  await site.catchUp();
  const refused = await start();
  expect([refused.status, refused.body.code]).toEqual([402, 'PLAN_REQUIRED']);
  const [row] = await queryRows(
    site.database.ownerUrl,
    `SELECT desired FROM agents WHERE id = '${agent}'`,
  );
  expect(row).not.toMatchObject({ desired: 'stopped' });
});

test('no log line has a key, a secret or the data of a buyer', attack, async () => {
  await site.subscribe(ada);
  const { PAYPROC_SECRET_KEY: key = '', PAYPROC_WEBHOOK_SECRET: secret = '' } = site.processor.env;
  const lines = site.logged.filter((line) =>
    [key, secret, 'buyer@example.com'].some((each) => line.includes(each)),
  );
  expect([site.logged.length > 0, lines]).toEqual([true, []]);
});

test('the dashboard shows plan and storage, with links to the pages of the processor', async () => {
  const section = async () => {
    const { text } = await site.web(ada, 'GET', '/dashboard');
    return (
      /<section aria-labelledby="about-plan-and-credits">.*?<\/section>/s.exec(text)?.[0] ?? ''
    ).replace(/\s+/g, ' ');
  };
  const before = await section();
  for (const [plan, price] of [
    ['label', 29],
    ['solo', 79],
    ['collective', 199],
    ['network', 499],
  ]) {
    expect(before).toContain(
      `<a href="/api/payproc/checkout?plan=${plan}">Buy ${plan}, £${price} a month</a>`,
    );
  }
  expect(before).not.toContain('/api/payproc/storage-upgrade');
  await site.subscribe(ada);
  const bought = await section();
  expect(bought).toContain('>Pay for or cancel solo</a>');
  expect(bought).toContain('>Change to network, £499 a month</a>');
  expect(bought).toContain('Buy storage');
  const body = { plan: '50gb' };
  const { body: storage } = await site.web(ada, 'POST', '/api/payproc/storage-upgrade', { body });
  site.processor.pay(storage.sessionId);
  await site.catchUp();
  expect(await section()).toMatch(/<dt>Storage<\/dt> <dd>50gb, until .*Change storage/);
  expect((await site.web(ada, 'GET', '/dashboard?done=plan-bought')).text).toContain(
    'Your plan holds as soon as',
  );
});
