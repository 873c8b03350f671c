import type { ServerResponse } from 'node:http';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { billingSite, type BillingSite } from '../../billing/support.js';
import { stub, type StubService } from '../../gateway/stub-service.js';
import type { Person } from '../../money/wallets/support.js';
import { queryRows } from '../../platform/database/catalog.js';
import type { Answer } from '../../support/http.js';
import { until } from '../../support/until.js';

const TOP_UP = '/api/wallet/top-up';

/** Requests to a slow service: more than a process has connections to the database. */
const WAITING = 40;

let site: BillingSite;
let upstream: StubService;
let people: Person[];

/** Answers that the upstream of x402 withholds. */
const withheld: ServerResponse[] = [];

beforeAll(async () => {
  upstream = await stub((_request, response) => withheld.push(response));
  site = await billingSite({ X402_GATEWAY_URL: upstream.url });
  people = await Promise.all(Array.from({ length: WAITING }, () => site.person()));
});
afterAll(async () => {
  await upstream?.close();
  await site?.close();
});

const count = async (table: string) => {
  const rows = await queryRows<{ count: string }>(
    site.database.ownerUrl,
    `SELECT count(*) FROM ${table}`,
  );
  return Number(rows[0]?.count);
};

/** Sends requests of other kinds, and expects their answers before any of the slow ones. */
async function expectOthersFirst(slow: readonly Promise<Answer>[]): Promise<void> {
  let answered = 0;
  for (const each of slow) void each.then(() => answered++);
  const ada = await site.person();
  const event = {
    id: 'evt_of_nothing',
    type: 'customer.created',
    created: 1,
    data: { object: {} },
  };
  const others = await Promise.all([
    site.web(ada, 'GET', '/api/credits'),
    site.web(ada, 'GET', '/api/billing'),
    site.web(ada, 'GET', '/api/auth/session'),
    site.deliver(event),
    ...people.map((person) => site.web(person, 'GET', '/api/credits')),
  ]);
  expect(new Set(others.map(({ status }) => status))).toEqual(new Set([200]));
  expect(answered).toBe(0);
}

test('a slow gateway of x402 delays no other request', async () => {
  const payment = { action: 'pay', amount: 1, recipient: `0x${'ab'.repeat(20)}` };
  const agents = await Promise.all(people.map((person) => site.agentOf(person)));
  const slow = people.map((person, n) => {
    const body = n % 2 === 0 ? { ...payment, agentId: agents[n] } : { action: 'endpoints' };
    return site.web(person, 'POST', '/api/x402', { body });
  });
  await until(() => withheld.length === WAITING);
  await expectOthersFirst(slow);
  for (const each of withheld) each.destroy();
  const statuses = (await Promise.all(slow)).map(({ status }) => status);
  expect(new Set(statuses)).toEqual(new Set([500]));
});

test('a slow payment processor delays no other request, and leaves no checkout when it ends', async () => {
  site.processor.delayMs = 30_000;
  const slow = people.map((person) => site.web(person, 'GET', TOP_UP));
  await until(async () => (await count('checkouts')) === WAITING);
  await expectOthersFirst(slow);
  await site.processor.close();
  const answers = await Promise.all(slow);
  expect(answers.map(({ body, status }) => [status, body.error])).toEqual(
    people.map(() => [500, 'The payment processor created no checkout: retry later']),
  );
  expect(site.processor.sessions.size).toBe(0);
  // The rows cause no charge: no checkout of the processor names them.
  const rows = await site.database.db
    .asPlatform()
    .query<{ session_id: string | null }>('SELECT session_id FROM checkouts');
  expect(rows).toEqual(people.map(() => ({ session_id: null })));
});

test('an unavailable payment processor is a 500 for each way to buy', async () => {
  const [ada] = people;
  if (!ada) throw new RangeError('There must be a person');
  const before = await count('checkouts');
  const answers = await Promise.all([
    site.web(ada, 'GET', TOP_UP),
    site.web(ada, 'GET', '/api/payproc/credits?price=credits-500'),
    site.web(ada, 'POST', '/api/billing', {
      body: { action: 'buy-credits', price: 'credits-500' },
    }),
  ]);
  expect(answers.map(({ status }) => status)).toEqual([500, 500, 500]);
  expect(await count('checkouts')).toBe(before + 3);
  expect(site.processor.sessions.size).toBe(0);
});
