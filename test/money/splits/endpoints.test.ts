import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { createBackend } from '../../../api/backend/backend.js';
import type { Listening } from '../../../api/http/server.js';
import { createWeb } from '../../../api/web/web.js';
import { createApiKey } from '../../../src/accounts/accounts/api-keys.js';
import { shownAddress } from '../../../src/money/chain/address.js';
import { MAX_OPEN_SPLITS } from '../../../src/money/splits/royalty-splits.js';
import { queryRows } from '../../platform/database/catalog.js';
import { KEY_SCOPES } from '../../../src/types/key-scopes.js';
import { signIn } from '../../support/account.js';
import { databaseAlone } from '../../support/dependencies.js';
import { call, type Answer } from '../../support/http.js';
import { testDatabase, type TestDatabase } from '../../support/postgres.js';
import { makeAgent, makePayer, newAddress, type Payer } from './support.js';

const attack = { tags: 'attack' };

const TOKEN = '0x20c0000000000000000000000000000000000000';
const KEY = 'the internal key of these tests';
const internal = { authorization: `Bearer ${KEY}` };

const UNDERGROUND = '/api/underground/splits';
const INSTANT = '/api/skills/instant-split';
const SETTLEMENT = '/api/skills/booking-settlement';

let database: TestDatabase;
let alone: Awaited<ReturnType<typeof databaseAlone>>;
let web: Listening;
let backend: Listening;
let ada: Payer;
let bob: Payer;

beforeAll(async () => {
  database = await testDatabase();
  alone = await databaseAlone(database, undefined, {
    TRUSTED_PROXIES: '127.0.0.1',
    INTERNAL_API_KEY: KEY,
    USDC_ADDRESS: TOKEN,
  });
  web = await createWeb(alone.dependencies).listen('127.0.0.1', 0);
  backend = await createBackend(alone.dependencies).listen('127.0.0.1', 0);
});
afterAll(async () => {
  await web?.close();
  await backend?.close();
  await alone?.close();
  await database?.close();
});
beforeEach(async () => {
  const { secrets } = alone.dependencies;
  [ada, bob] = [await makePayer(database.db, secrets), await makePayer(database.db, secrets)];
});

type Headers = Readonly<Record<string, string>>;

const ask = (method: string, path: string, body?: unknown, headers: Headers = internal) =>
  call(backend.url, method, path, { body, headers });

async function asUser(user: Payer, method: string, path: string, body?: unknown) {
  const cookie = await signIn(database.db, user);
  return call(web.url, method, path, { body, headers: { cookie } });
}

const wanted = ({ id: userId, agentId, wallet: fromAddress }: Payer) => ({
  userId,
  agentId,
  fromAddress,
  name: 'a song',
  totalAmount: '10',
  recipients: [
    { address: newAddress(), share: 33.3333 },
    { address: newAddress(), share: 33.3333 },
    { address: newAddress(), share: 33.3334 },
  ],
});

/** Returns a body for the web API, which pays from the agent's wallet. */
function skillOf(payer: Payer) {
  const { agentId, totalAmount, recipients } = wanted(payer);
  return { agentId, totalAmount, recipients };
}

const show = (id: number, headers: Headers = internal) =>
  ask('GET', `${UNDERGROUND}/${id}`, undefined, headers);

const idOf = (answer: Answer): number => {
  expect([answer.status, answer.body]).toEqual([
    200,
    { success: true, splitId: expect.any(Number), status: 'queued' },
  ]);
  return answer.body.splitId as number;
};

const set = (id: number, values: string) =>
  queryRows(database.ownerUrl, `UPDATE royalty_splits SET ${values} WHERE id = ${id}`);

const countOf = async ({ id }: Payer) => {
  const sql = `SELECT count(*)::integer AS count FROM royalty_splits WHERE user_id = '${id}'`;
  return (await queryRows<{ count: number }>(database.ownerUrl, sql))[0]?.count;
};

describe('splits on the backend', () => {
  test('queues a split and deals its payouts at once', async () => {
    const body = wanted(ada);
    const id = idOf(await ask('POST', UNDERGROUND, body));
    const { status, body: shown } = await show(id);
    expect(status).toBe(200);
    expect(shown).toEqual({
      splitId: id,
      name: 'a song',
      status: 'queued',
      totalAmount: '10.000000',
      fromAddress: shownAddress(ada.wallet),
      createdAt: expect.any(String),
      completedAt: null,
      payouts: body.recipients.map(({ address, share }, n) => ({
        address: shownAddress(address),
        share,
        amount: ['3.333330', '3.333330', '3.333340'][n],
        status: 'pending',
        transaction: null,
      })),
    });
  });

  test('assigns the remainder to the largest remainders, and to the first of equal ones', async () => {
    const recipients = [25, 25, 25, 25].map((share) => ({ address: newAddress(), share }));
    const body = { ...wanted(ada), totalAmount: '0.000002', recipients };
    const { body: shown } = await show(idOf(await ask('POST', UNDERGROUND, body)));
    expect(
      shown.payouts.map(({ amount, status }: Record<string, string>) => [amount, status]),
    ).toEqual([
      ['0.000001', 'pending'],
      ['0.000001', 'pending'],
      ['0.000000', 'skipped'],
      ['0.000000', 'skipped'],
    ]);
  });

  test.each([
    ['10.0000004', '10.000000'],
    ['0.0000005', '0.000001'],
    ['.5', '0.500000'],
    ['999999999999999.9999995', '1000000000000000.000000'],
  ])('rounds the amount %s to %s', async (totalAmount, shown) => {
    const id = idOf(await ask('POST', UNDERGROUND, { ...wanted(ada), totalAmount }));
    expect((await show(id)).body.totalAmount).toBe(shown);
  });

  const address = newAddress();
  test.each<[string, object]>([
    ['no recipients', { recipients: [] }],
    [
      'more than a hundred',
      { recipients: Array.from({ length: 101 }, () => ({ address: newAddress(), share: 1 })) },
    ],
    ['less than all', { recipients: [{ address, share: 99.9999 }] }],
    ['more than all', { recipients: [{ address, share: 100.0001 }] }],
    [
      'shares that add up only as numbers do',
      {
        recipients: [33.33333, 33.33333, 33.33334].map((share) => ({
          address: newAddress(),
          share,
        })),
      },
    ],
    [
      'a share below nothing',
      {
        recipients: [
          { address, share: -1 },
          { address: newAddress(), share: 101 },
        ],
      },
    ],
    ['a share as text', { recipients: [{ address, share: '100' }] }],
    [
      'an address twice, in another case',
      {
        recipients: [
          { address, share: 50 },
          { address: `0x${address.slice(2).toUpperCase()}`, share: 50 },
        ],
      },
    ],
    ['no address', { recipients: [{ address: '0x1', share: 100 }] }],
    ['the address of nobody', { recipients: [{ address: `0x${'0'.repeat(40)}`, share: 100 }] }],
    ['nothing', { totalAmount: '0' }],
    ['an amount that rounds to zero', { totalAmount: '0.0000004' }],
    ['a sign', { totalAmount: '-1' }],
    ['an exponent', { totalAmount: '1e3' }],
    ['a number', { totalAmount: 10 }],
    ['too many digits', { totalAmount: '1000000000000000' }],
    ['no name', { name: ' ' }],
  ])('refuses a split with %s before any lookup', async (_, change) => {
    const body = { ...wanted(ada), agentId: 'nobody', ...change };
    expect((await ask('POST', UNDERGROUND, body)).status).toBe(400);
    expect(await countOf(ada)).toBe(0);
  });

  test('names the invalid share in the refusal', async () => {
    const shares = (...each: readonly number[]) => ({
      ...wanted(ada),
      recipients: each.map((share) => ({ address: newAddress(), share })),
    });
    for (const [given, error] of [
      [[50, 50.00001], 'recipients[1].share must have at most four decimals'],
      [[1e-7, 99], 'recipients[0].share must have at most four decimals'],
    ] as const) {
      const { status, body } = await ask('POST', UNDERGROUND, shares(...given));
      expect([status, body]).toEqual([400, { error }]);
    }
  });

  test('pays a split only from a stored wallet of the agent', async () => {
    const other = await makeAgent(database.db, ada.id);
    const { id: userId, wallet } = bob;
    const own = newAddress();
    await queryRows(
      database.ownerUrl,
      `INSERT INTO wallets (id, user_id, agent_id, kind, address, created_at)
       VALUES ('${randomUUID()}', '${ada.id}', '${other}', 'agent', '${own}', now())`,
    );
    for (const change of [
      { fromAddress: newAddress() },
      { fromAddress: wallet },
      { agentId: other },
      // The agent brought this wallet itself, so no key is stored to sign with.
      { agentId: other, fromAddress: own },
      { userId },
      { userId: 'nobody' },
    ]) {
      const { status, body } = await ask('POST', UNDERGROUND, { ...wanted(ada), ...change });
      expect([change, status, body.error]).toEqual([change, 404, 'Wallet not found']);
    }
    const upper = `0x${ada.wallet.slice(2).toUpperCase()}`;
    idOf(await ask('POST', UNDERGROUND, { ...wanted(ada), fromAddress: upper }));
  });

  test('creates one split for repeated requests with one idempotency key', async () => {
    const headers = { ...internal, 'idempotency-key': randomUUID() };
    const body = wanted(ada);
    const first = idOf(await ask('POST', UNDERGROUND, body, headers));
    expect(idOf(await ask('POST', UNDERGROUND, body, headers))).toBe(first);
    // Stored answers are removed after a day, or may never have been stored.
    await queryRows(database.ownerUrl, 'DELETE FROM idempotency_keys');
    const answers = await Promise.all([1, 2, 3].map(() => ask('POST', UNDERGROUND, body, headers)));
    for (const { status, body } of answers) {
      expect([status, body.splitId]).toEqual(status === 409 ? [409, undefined] : [200, first]);
    }
    await queryRows(database.ownerUrl, 'DELETE FROM idempotency_keys');
    const another = { ...body, totalAmount: '11' };
    expect((await ask('POST', UNDERGROUND, another, headers)).status).toBe(422);
    expect(await countOf(ada)).toBe(1);
  });

  test('refuses a split beyond the limit of open splits', async () => {
    const id = idOf(await ask('POST', UNDERGROUND, wanted(ada)));
    await queryRows(
      database.ownerUrl,
      `INSERT INTO royalty_splits (user_id, agent_id, request_key, from_address, chain_id, token_address, name, total_amount)
       SELECT user_id, agent_id, 'one ' || n, from_address, chain_id, token_address, name, total_amount
         FROM royalty_splits, generate_series(2, ${MAX_OPEN_SPLITS}) n WHERE id = ${id}`,
    );
    const refused = await ask('POST', UNDERGROUND, wanted(ada));
    const facts = { current: MAX_OPEN_SPLITS, limit: MAX_OPEN_SPLITS };
    expect([refused.status, refused.body]).toEqual([429, expect.objectContaining(facts)]);
    idOf(await ask('POST', UNDERGROUND, wanted(bob)));
    await set(id, "status = 'failed'");
    idOf(await ask('POST', UNDERGROUND, wanted(ada)));
    expect((await ask('POST', `${UNDERGROUND}/${id}/retry`)).status).toBe(429);
  });

  test(
    'counts the splits and the retries of a user together, from any address',
    attack,
    async () => {
      const headers = { ...internal, 'x-user-id': ada.id };
      const retry = () => ask('POST', `${UNDERGROUND}/999999999/retry`, undefined, headers);
      const answers = await Promise.all(Array.from({ length: 60 }, retry));
      expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([404]));
      expect((await retry()).status).toBe(429);
      expect((await ask('POST', UNDERGROUND, wanted(ada), headers)).status).toBe(429);
      const others = { ...internal, 'x-user-id': bob.id };
      idOf(await ask('POST', UNDERGROUND, wanted(bob), others));
    },
  );

  test(
    'keeps the limit of open splits when many splits are retried concurrently',
    attack,
    async () => {
      const first = idOf(await ask('POST', UNDERGROUND, wanted(ada)));
      await set(first, "status = 'failed'");
      const rows = await queryRows<{ id: string; status: string }>(
        database.ownerUrl,
        `INSERT INTO royalty_splits (user_id, agent_id, request_key, from_address, chain_id, token_address, name, total_amount, status)
       SELECT user_id, agent_id, 'again ' || n, from_address, chain_id, token_address, name, total_amount,
              CASE WHEN n < 10 THEN 'failed' ELSE 'queued' END
         FROM royalty_splits, generate_series(1, 8 + ${MAX_OPEN_SPLITS}) n WHERE id = ${first}
       RETURNING id, status`,
      );
      const failed = rows.filter(({ status }) => status === 'failed');
      const answers = await Promise.all(
        failed.map(({ id }) => ask('POST', `${UNDERGROUND}/${id}/retry`)),
      );
      expect(answers.map(({ status }) => status).toSorted()).toEqual([
        202,
        ...failed.slice(1).map(() => 429),
      ]);
    },
  );

  test('refuses a split if no token is configured', async () => {
    const without = await databaseAlone(database, undefined, { INTERNAL_API_KEY: KEY });
    const listening = await createBackend(without.dependencies).listen('127.0.0.1', 0);
    try {
      const options = { body: wanted(ada), headers: internal };
      expect((await call(listening.url, 'POST', UNDERGROUND, options)).status).toBe(503);
    } finally {
      await listening.close();
      await without.close();
    }
  });

  test('writes a split and its retry to the audit log', async () => {
    const id = idOf(await ask('POST', UNDERGROUND, wanted(ada)));
    await set(id, "status = 'failed'");
    await ask('POST', `${UNDERGROUND}/${id}/retry`);
    const sql = `SELECT actor, action, detail ->> 'amount' AS amount FROM audit_log
                  WHERE user_id = '${ada.id}' AND subject = '${id}' ORDER BY id`;
    expect(await queryRows(database.ownerUrl, sql)).toEqual([
      { actor: 'operator', action: 'split.create', amount: '10000000' },
      { actor: 'operator', action: 'split.retry', amount: null },
    ]);
  });
});

describe('split retries', () => {
  test('retries only the unpaid payouts of a split', async () => {
    const id = idOf(await ask('POST', UNDERGROUND, wanted(ada)));
    await queryRows(
      database.ownerUrl,
      `UPDATE royalty_payouts SET payment = 'one', transaction = '0x01',
              status = CASE position WHEN 0 THEN 'confirmed' ELSE 'failed' END
        WHERE split_id = ${id}`,
    );
    await set(id, "status = 'partial', error = 'reverted', completed_at = now()");
    const before = (await show(id)).body;
    expect(before).toMatchObject({ status: 'partial', error: 'reverted' });
    const { status, body } = await ask('POST', `${UNDERGROUND}/${id}/retry`);
    expect([status, body]).toEqual([202, { success: true, splitId: id, status: 'queued' }]);
    const { error: _, ...rest } = before;
    expect((await show(id)).body).toEqual({
      ...rest,
      status: 'queued',
      completedAt: null,
      payouts: before.payouts.map((payout: object, n: number) =>
        n === 0 ? payout : { ...payout, status: 'pending', transaction: null },
      ),
    });
  });

  test.each(['queued', 'processing', 'completed'])(
    'answers 409 to a retry of a split that is %s',
    async (status) => {
      const id = idOf(await ask('POST', UNDERGROUND, wanted(ada)));
      await set(id, `status = '${status}'`);
      expect((await ask('POST', `${UNDERGROUND}/${id}/retry`)).status).toBe(409);
    },
  );

  test('answers 404 to a retry of a split that does not exist', async () => {
    expect((await ask('POST', `${UNDERGROUND}/999999999/retry`)).status).toBe(404);
    expect((await ask('POST', `${UNDERGROUND}/none/retry`)).status).toBe(400);
  });
});

describe('split lists', () => {
  test('lists the splits of one user, newest first, page by page', async () => {
    const ids: number[] = [];
    for (let n = 0; n < 3; n++) ids.unshift(idOf(await ask('POST', UNDERGROUND, wanted(ada))));
    idOf(await ask('POST', UNDERGROUND, wanted(bob)));
    const first = await ask('GET', `${UNDERGROUND}?userId=${ada.id}&limit=2`);
    const [, next = ''] = /<(.*)>/.exec(first.headers.get('link') ?? '') ?? [];
    const second = await ask('GET', next);
    const listed = [...first.body.splits, ...second.body.splits];
    expect(listed.map(({ splitId }) => splitId)).toEqual(ids);
    expect(listed[0]).toEqual((await show(ids[0] ?? 0)).body);
    expect(second.headers.get('link')).toBeNull();
    expect((await ask('GET', UNDERGROUND)).status).toBe(400);
  });
});

describe('splits on the web API', () => {
  test("pays a split from the agent's wallet, under the agent's name by default", async () => {
    const id = idOf(await asUser(ada, 'POST', INSTANT, skillOf(ada)));
    const { body } = await asUser(ada, 'GET', INSTANT);
    expect(body.splits).toMatchObject([
      {
        splitId: id,
        fromAddress: shownAddress(ada.wallet),
        name: `agent ${ada.agentId}`,
        status: 'queued',
      },
    ]);
    const named = { ...skillOf(ada), name: 'a song' };
    const second = idOf(await asUser(ada, 'POST', INSTANT, named));
    expect((await show(second)).body.name).toBe('a song');
  });

  test('refuses a split of an agent without a stored wallet', async () => {
    const agentId = await makeAgent(database.db, ada.id);
    const { status, body } = await asUser(ada, 'POST', INSTANT, { ...skillOf(ada), agentId });
    expect([status, body.error]).toEqual([404, 'Wallet not found']);
  });

  test('settles a booking once, and answers a repeated request with the first split', async () => {
    const bookingId = `booking ${randomUUID()}`;
    const settle = (body: object) => asUser(ada, 'POST', SETTLEMENT, { ...body, bookingId });
    const answers = await Promise.all([1, 2, 3, 4].map(() => settle(skillOf(ada))));
    const [first, ...others] = answers.map(idOf);
    expect(new Set(others)).toEqual(new Set([first]));
    await set(first ?? 0, "status = 'completed', completed_at = now()");
    const again = await settle({ ...skillOf(ada), totalAmount: '99' });
    expect([again.status, again.body]).toEqual([
      200,
      { success: true, splitId: first, status: 'completed' },
    ]);
    const { body } = await asUser(ada, 'GET', SETTLEMENT);
    expect(body.settlements).toMatchObject([{ splitId: first, bookingId }]);
    expect((await asUser(ada, 'GET', INSTANT)).body.splits).toEqual([]);
    expect(await countOf(ada)).toBe(1);
  });

  test('treats the same booking id of another user as another booking', attack, async () => {
    const bookingId = `booking ${randomUUID()}`;
    const [first, second] = [
      await asUser(ada, 'POST', SETTLEMENT, { ...skillOf(ada), bookingId }),
      await asUser(bob, 'POST', SETTLEMENT, { ...skillOf(bob), bookingId }),
    ];
    expect(idOf(first)).not.toBe(idOf(second));
  });
});

describe('splits of another user', () => {
  /** Returns the headers of each way in which Bob's programs can authenticate. */
  async function ways(): Promise<Headers[]> {
    const place = { userId: bob.id, requestId: randomUUID() };
    const asked = { name: 'ci', scopes: KEY_SCOPES, site: '192.0.2.0/24', sessionId: undefined };
    const { key } = await createApiKey(database.db, place, asked);
    return [{ authorization: `Bearer ${key}` }, { ...internal, 'x-user-id': bob.id }];
  }

  test('refuses to pay, show, list or retry a split of another user', attack, async () => {
    const id = idOf(await ask('POST', UNDERGROUND, wanted(ada)));
    await set(id, "status = 'failed'");
    const before = await show(id);
    for (const headers of await ways()) {
      const statuses = [
        await ask('POST', UNDERGROUND, wanted(ada), headers),
        await ask('POST', UNDERGROUND, { ...wanted(ada), userId: bob.id }, headers),
        await show(id, headers),
        await ask('GET', `${UNDERGROUND}?userId=${ada.id}`, undefined, headers),
        await ask('POST', `${UNDERGROUND}/${id}/retry`, undefined, headers),
      ];
      expect(statuses.map(({ status }) => status)).toEqual([404, 404, 404, 404, 404]);
      // Bob's own splits are accessible.
      const own = idOf(await ask('POST', UNDERGROUND, wanted(bob), headers));
      expect((await show(own, headers)).status).toBe(200);
    }
    for (const path of [INSTANT, SETTLEMENT]) {
      const body = { ...skillOf(ada), bookingId: 'one' };
      expect((await asUser(bob, 'POST', path, body)).status).toBe(404);
      expect((await asUser(bob, 'GET', path)).text).not.toContain(ada.wallet);
    }
    expect((await show(id)).body).toEqual(before.body);
    expect(await countOf(ada)).toBe(1);
  });
});
