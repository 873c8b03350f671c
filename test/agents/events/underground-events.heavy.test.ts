import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { createBackend } from '../../../api/backend/backend.js';
import type { Listening } from '../../../api/http/server.js';
import { createApiKey } from '../../../src/accounts/accounts/api-keys.js';
import { MAX_EVENTS } from '../../../src/agents/events/underground-events.js';
import { KEY_SCOPES, type KeyScope } from '../../../src/types/key-scopes.js';
import { makeAgent } from '../../money/splits/support.js';
import { queryRows } from '../../platform/database/catalog.js';
import { makeAccount } from '../../support/account.js';
import { databaseAlone } from '../../support/dependencies.js';
import { call, pagesOf } from '../../support/http.js';
import { testDatabase, type TestDatabase } from '../../support/postgres.js';

const attack = { tags: 'attack' };

const PATH = '/api/underground/events';
const KEY = 'the internal key of these tests';
const internal = { authorization: `Bearer ${KEY}` };

type Headers = Readonly<Record<string, string>>;

/** A user with an agent and an API key. */
interface Holder {
  readonly id: string;
  readonly agentId: string;
  readonly headers: Headers;
}

let database: TestDatabase;
let alone: Awaited<ReturnType<typeof databaseAlone>>;
let backend: Listening;
let ada: Holder;
let bob: Holder;

beforeAll(async () => {
  database = await testDatabase();
  alone = await databaseAlone(database, undefined, {
    TRUSTED_PROXIES: '127.0.0.1',
    INTERNAL_API_KEY: KEY,
  });
  backend = await createBackend(alone.dependencies).listen('127.0.0.1', 0);
});
afterAll(async () => {
  await backend?.close();
  await alone?.close();
  await database?.close();
});
beforeEach(async () => {
  await queryRows(database.ownerUrl, 'DELETE FROM underground_events');
  [ada, bob] = [await holder(), await holder()];
});

async function holder(scopes: readonly KeyScope[] = KEY_SCOPES): Promise<Holder> {
  const { id } = await makeAccount(database.db);
  const agentId = await makeAgent(database.db, id);
  const { key } = await createApiKey(
    database.db,
    { userId: id, requestId: randomUUID() },
    { name: 'a key', scopes, site: id },
  );
  return { id, agentId, headers: { authorization: `Bearer ${key}` } };
}

const event = (agentId: string, fields: object = {}) => ({
  agentId,
  name: 'A night',
  description: 'With music',
  venue: 'Cellar 3',
  eventDate: '2027-03-01T20:00:00Z',
  ticketPriceUsdc: '12.5',
  totalTickets: 200,
  ...fields,
});

const make = (headers: Headers, body: unknown) =>
  call(backend.url, 'POST', PATH, { body, headers });

const list = (headers: Headers, query = '') =>
  call(backend.url, 'GET', `${PATH}${query}`, { headers });

const datesOf = ({ body }: { readonly body: readonly { readonly event_date: string }[] }) =>
  body.map(({ event_date }) => event_date);

describe('POST /api/underground/events', () => {
  test("stores an event of the caller's agent and answers 201", async () => {
    const { body, status } = await make(ada.headers, event(ada.agentId));
    expect([status, body]).toEqual([
      201,
      {
        id: expect.any(Number),
        agent_id: ada.agentId,
        name: 'A night',
        description: 'With music',
        venue: 'Cellar 3',
        event_date: '2027-03-01T20:00:00.000Z',
        ticket_price_usdc: '12.500000',
        total_tickets: 200,
      },
    ]);
    expect((await list(ada.headers)).body).toEqual([body]);
    const audit = await queryRows(
      database.ownerUrl,
      `SELECT action, subject, detail FROM audit_log WHERE user_id = '${ada.id}'
        ORDER BY id DESC LIMIT 1`,
    );
    expect(audit).toEqual([
      { action: 'event.create', subject: String(body.id), detail: { agentId: ada.agentId } },
    ]);
  });

  test.each([
    ['2027-03-01', '2027-03-01T00:00:00.000Z'],
    ['2027-03-01T20:30', '2027-03-01T20:30:00.000Z'],
    ['2027-03-01T20:30:15.5', '2027-03-01T20:30:15.500Z'],
    ['2027-03-01T20:30:00+02:00', '2027-03-01T18:30:00.000Z'],
    ['1999-12-31T23:59:59Z', '1999-12-31T23:59:59.000Z'],
  ])('stores the date %s as %s', async (eventDate, shown) => {
    const { body, status } = await make(ada.headers, event(ada.agentId, { eventDate }));
    expect([status, body.event_date]).toEqual([201, shown]);
  });

  test.each(Object.keys(event('x')))('demands %s', async (field) => {
    const { body, status } = await make(ada.headers, event(ada.agentId, { [field]: undefined }));
    expect([status, body]).toEqual([400, { error: expect.stringContaining(field) }]);
  });

  test.each([
    { name: ' ' },
    { name: 'x'.repeat(201) },
    { description: 7 },
    { venue: '' },
    { eventDate: 'tomorrow' },
    { eventDate: '2027-02-30' },
    { eventDate: '0000-01-01' },
    { eventDate: 1_800_000_000 },
    { ticketPriceUsdc: 12.5 },
    { ticketPriceUsdc: '-1' },
    { ticketPriceUsdc: '1.0000001' },
    { ticketPriceUsdc: '' },
    { totalTickets: '200' },
    { totalTickets: 0 },
    { totalTickets: 1.5 },
    { totalTickets: 1_000_001 },
  ])('answers 400 for %j', async (fields) => {
    const { body, status } = await make(ada.headers, event(ada.agentId, fields));
    const [name = ''] = Object.keys(fields);
    expect([status, body]).toEqual([400, { error: expect.stringContaining(name) }]);
  });

  test('answers 401 without a key, and 404 for an unknown agent', async () => {
    expect((await make({}, event(ada.agentId))).status).toBe(401);
    expect((await make({ authorization: 'Bearer x' }, event(ada.agentId))).status).toBe(401);
    for (const headers of [ada.headers, internal]) {
      const { body, status } = await make(headers, event(randomUUID()));
      expect([status, body]).toEqual([404, { error: 'Agent not found' }]);
    }
  });

  test("answers 404 for another user's agent", attack, async () => {
    for (const headers of [bob.headers, { ...internal, 'x-user-id': bob.id }]) {
      const { body, status } = await make(headers, event(ada.agentId));
      expect([status, body]).toEqual([404, { error: 'Agent not found' }]);
    }
    expect((await list(internal)).body).toEqual([]);
  });

  test('stores one event for one Idempotency-Key, however many requests come', attack, async () => {
    const headers = { ...ada.headers, 'idempotency-key': randomUUID() };
    const at = () => make(headers, event(ada.agentId));
    const all = await Promise.all(Array.from({ length: 10 }, at));
    expect(all.map(({ status }) => status).every((status) => [201, 409].includes(status))).toBe(
      true,
    );
    expect((await at()).status).toBe(201);
    expect((await list(ada.headers)).body).toHaveLength(1);
  });

  test(`stores at most ${MAX_EVENTS} events of an agent`, attack, async () => {
    await make(ada.headers, event(ada.agentId));
    await queryRows(
      database.ownerUrl,
      `INSERT INTO underground_events (user_id, agent_id, name, description, venue, event_date,
                                       ticket_price_usdc, total_tickets)
       SELECT user_id, agent_id, name, description, venue, event_date, ticket_price_usdc, total_tickets
         FROM underground_events, generate_series(3, ${MAX_EVENTS})`,
    );
    const both = await Promise.all([1, 2].map(() => make(ada.headers, event(ada.agentId))));
    expect(both.map(({ status }) => status).sort()).toEqual([201, 409]);
    const { body } = await make(ada.headers, event(ada.agentId));
    expect(body).toMatchObject({ code: 'EVENT_LIMIT_REACHED', limit: MAX_EVENTS });
    const others = await makeAgent(database.db, ada.id);
    expect((await make(ada.headers, event(others))).status).toBe(201);
  });
});

describe('GET /api/underground/events', () => {
  test('lists the newest event date first, 50 a page', async () => {
    const days = Array.from(
      { length: 60 },
      (_, n) => new Date(Date.UTC(2027, 0, 1 + ((n * 7) % 53))),
    );
    for (const day of days) {
      const made = await make(internal, event(ada.agentId, { eventDate: day.toISOString() }));
      expect(made.status).toBe(201);
    }
    const pages = [];
    for await (const page of pagesOf(
      (path) => call(backend.url, 'GET', path, { headers: internal }),
      PATH,
    )) {
      pages.push(page);
    }
    expect(pages.map(({ body }) => body.length)).toEqual([50, 10]);
    const dates = pages.flatMap(datesOf);
    expect(dates).toEqual(dates.toSorted().reverse());
    const ids = pages.flatMap(({ body }) => body.map(({ id }: { id: number }) => id));
    expect(new Set(ids).size).toBe(60);
  }, 60_000);

  test('answers 400 for a bad cursor or limit, and 401 without a key', async () => {
    for (const query of ['?cursor=x', '?limit=0', '?limit=201']) {
      expect((await list(internal, query)).status).toBe(400);
    }
    expect((await list({})).status).toBe(401);
  });

  test("shows a user's key its own agents' events, and the internal key all", attack, async () => {
    await make(ada.headers, event(ada.agentId, { eventDate: '2027-01-02' }));
    await make(internal, event(bob.agentId, { eventDate: '2027-01-01' }));
    const [ofAda, ofBob] = ['2027-01-02T00:00:00.000Z', '2027-01-01T00:00:00.000Z'];
    expect(datesOf(await list(ada.headers))).toEqual([ofAda]);
    expect(datesOf(await list({ ...internal, 'x-user-id': bob.id }))).toEqual([ofBob]);
    expect(datesOf(await list(internal))).toEqual([ofAda, ofBob]);
  });

  test('needs the scope agents', attack, async () => {
    const { headers } = await holder(KEY_SCOPES.filter((scope) => scope !== 'agents'));
    const { body, status } = await list(headers);
    expect([status, body]).toMatchObject([403, { code: 'SCOPE_REQUIRED' }]);
  });
});
