// @module-tag attack
import { randomUUID } from 'node:crypto';
import { createTestClient, http, type Hex } from 'viem';
import { generatePrivateKey } from 'viem/accounts';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { ESCROW_GAS } from '../../../src/money/sessions/escrow.js';
import { sealKey } from '../../../src/money/wallets/wallet-keys.js';
import { queryRows } from '../../platform/database/catalog.js';
import { newAddress as newClient } from '../../support/http.js';
import { storedGas } from '../gas/support.js';
import type { Person } from '../wallets/support.js';
import { ONE, sessionLab, type SessionLab, type Wallet } from './support.js';

const SESSIONS = '/api/wallet/sessions';

/** Accepts every signature. */
const ACCEPTS_ALL = '0x631626ba7e60e01b5f5260205ff3';

const RESERVED = Number(ESCROW_GAS);

/** Two openings at their gas limit, and four of all. */
const LIMIT = 2 * RESERVED;
const TOTAL = 4 * RESERVED;

let lab: SessionLab;
let stop = () => Promise.resolve();
beforeAll(async () => {
  lab = await sessionLab({
    GAS_A_DAY: String(LIMIT),
    GAS_A_DAY_TOTAL: String(TOTAL),
    TRUSTED_PROXIES: '127.0.0.1',
  });
});
beforeEach(() => owner('DELETE FROM gas_reservations; DELETE FROM pending_notifications'));
afterEach(async () => {
  await stop();
  stop = () => Promise.resolve();
});
afterAll(() => lab?.close());

const owner = (sql: string) => queryRows<Record<string, unknown>>(lab.site.database.ownerUrl, sql);
const run = () => {
  stop = lab.run();
};

interface Options {
  readonly user?: Person;
  /** Address of the client; a new one by default. */
  readonly from?: string;
  /** Seconds until the deadline of the authorization; an hour by default. */
  readonly left?: number;
}

/** Requests a session of 1 pathUSD with the wallet's signature. */
async function open(wallet: Wallet, { from = newClient(), left, user }: Options = {}) {
  const deadline = left === undefined ? undefined : BigInt(Math.floor(Date.now() / 1_000) + left);
  const authorization = await lab.sign(wallet, ONE, deadline === undefined ? {} : { deadline });
  const body = { address: wallet.address, deposit: '1', authorization };
  return lab.site.web(user, 'POST', SESSIONS, { body, from });
}

/** Requests a session, and returns once its row exists. @returns the pending answer. */
async function begin(wallet: Wallet, options?: Options) {
  const answer = open(wallet, options);
  await expect.poll(async () => (await failuresOf(wallet)).length).toBe(1);
  return { answer };
}

const failuresOf = ({ lower }: Wallet) =>
  lab.site.database.db
    .asPlatform()
    .query<{ failure: string | null }>(
      'SELECT failure FROM payment_sessions WHERE address = $lower ORDER BY created_at',
      { lower },
    );

const setCode = (address: Hex, bytecode: Hex) =>
  createTestClient({ mode: 'anvil', transport: http(lab.chain.rpcUrl) }).setCode({
    address,
    bytecode,
  });

/** Sets the gas of the only reservation, so that this much of the total is left. */
const leave = (gas: number) => owner(`UPDATE gas_reservations SET gas = ${TOTAL - gas}`);

/** Adds failed sessions beside one of a wallet. @param address SQL of the address of the n-th. */
async function addFailed(
  { lower }: Wallet,
  count: number,
  { address, failure }: { readonly address: string; readonly failure: string },
): Promise<void> {
  const added = await owner(
    `INSERT INTO payment_sessions (id, token_hash, token_end, sealed_token, address, chain_id, escrow,
         hold_id, nonce, authorization_deadline, deposit, state, failure)
       SELECT gen_random_uuid()::text, gen_random_uuid()::text, token_end, sealed_token, ${address},
              chain_id, escrow, hold_id, '0x' || md5(random()::text) || md5(random()::text),
              authorization_deadline, deposit, 'failed', '${failure}'
         FROM (SELECT * FROM payment_sessions WHERE address = '${lower}' LIMIT 1) s,
              generate_series(1, ${count}) n RETURNING id`,
  );
  expect(added).toHaveLength(count);
}

const retryAfter = { status: 429, body: { error: expect.stringContaining('Recent openings') } };

test('reserves the gas of an opening for its wallet and client, and settles it from the receipt', async () => {
  const wallet = await lab.wallet(ONE);
  const { answer } = await begin(wallet, { from: '192.0.2.1' });
  const stored = { userId: null, wallet: wallet.lower, client: '192.0.2.1', hasFailed: false };
  const { db } = lab.site.database;
  expect(await storedGas(db)).toMatchObject([{ ...stored, gas: RESERVED, isSettled: false }]);
  run();
  expect((await answer).status).toBe(201);
  const [used] = await storedGas(db);
  expect(used).toMatchObject({ ...stored, isSettled: true });
  expect(used?.gas).toBeGreaterThan(100_000);
  expect(used?.gas).toBeLessThan(RESERVED);
});

test('refuses openings beyond the gas of a day for a client, and for a user from any client', async () => {
  const wallets = await Promise.all([1, 2, 3, 4].map(() => lab.wallet(ONE)));
  const [one, other, third, fourth] = wallets as [Wallet, Wallet, Wallet, Wallet];
  const from = '192.0.2.2';
  const begun = [await begin(one, { from }), await begin(other, { from })];
  const refused = await open(third, { from });
  expect(refused).toMatchObject({ status: 429, body: { current: LIMIT, limit: LIMIT } });
  expect(await failuresOf(third)).toEqual([]);
  const user = await lab.site.person();
  begun.push(await begin(third, { from, user }));
  await owner(`UPDATE gas_reservations SET gas = ${LIMIT} WHERE user_id IS NOT NULL`);
  await owner('DELETE FROM gas_reservations WHERE user_id IS NULL');
  expect(await open(fourth, { user })).toMatchObject({ status: 429, body: { limit: LIMIT } });
  run();
  for (const { answer } of begun) expect((await answer).status).toBe(201);
});

test('settles and closes sessions when no gas of the day is left, and opens none', async () => {
  run();
  const [wallet, other] = [await lab.wallet(ONE), await lab.wallet(ONE)];
  const made = await open(wallet);
  expect(made.status).toBe(201);
  await leave(0);
  for (let n = 0; n < 2; n++) {
    const refused = await open(other);
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([
      503,
      expect.stringMatching(/^\d+$/),
    ]);
  }
  const reported = await owner(`SELECT event FROM pending_notifications`);
  expect(reported).toEqual([{ event: { event: 'gas_spent', limit: TOTAL } }]);
  const { id } = made.body.session;
  const closed = await lab.site.web(undefined, 'DELETE', `${SESSIONS}?sessionId=${id}`);
  expect(closed).toMatchObject({ status: 200, body: { refunded: '1.000000' } });
});

test('counts refused openings of wallets without code, for the wallet and for the client', async () => {
  const wallet = await lab.wallet(ONE);
  const from = '192.0.2.3';
  const { answer } = await begin(wallet, { from });
  await lab.withdraw(wallet, ONE);
  run();
  expect((await answer).status).toBe(402);
  expect(await failuresOf(wallet)).toEqual([{ failure: 'refused' }]);
  const { db } = lab.site.database;
  expect(await storedGas(db)).toMatchObject([{ client: from, gas: 0, hasFailed: true }]);
  // Another two, of which the wallet may have one.
  await addFailed(wallet, 1, { failure: 'refused', address: `'${wallet.lower}'` });
  expect((await open(wallet)).status).toBe(402);
  await addFailed(wallet, 1, { failure: 'refused', address: `'${wallet.lower}'` });
  expect(await open(wallet)).toMatchObject(retryAfter);
  const ofWallet = `WHERE address = '${wallet.lower}'`;
  await owner(`UPDATE payment_sessions SET created_at = now() - interval '61 minutes' ${ofWallet}`);
  expect((await open(wallet)).status).toBe(402);
  await addFailed(wallet, 1, { failure: 'reverted', address: `'${wallet.lower}'` });
  expect(await open(wallet)).toMatchObject(retryAfter);
  await owner(`DELETE FROM payment_sessions ${ofWallet}`);
  const other = await lab.wallet(ONE);
  await owner(
    `INSERT INTO gas_reservations (id, client, gas, has_failed, settled_at)
     SELECT 'failed ' || n, '${from}', 0, true, now() FROM generate_series(1, 19) n`,
  );
  expect(await open(other, { from })).toMatchObject(retryAfter);
  await owner(`DELETE FROM gas_reservations WHERE id = 'failed 1'`);
  expect((await open(other, { from })).status).toBe(201);
});

test('releases the gas of an opening whose key is no longer stored', async () => {
  const [user, privateKey] = [await lab.site.person(), generatePrivateKey()];
  const sealed = sealKey(lab.site.dependencies.secrets, user.id, privateKey);
  const { db } = lab.site.database;
  await db
    .asUser(user.id)
    .transaction((tx) =>
      tx.Wallet.create({ id: randomUUID(), userId: user.id, kind: 'imported', ...sealed }),
    );
  const wallet = await lab.wallet(ONE, privateKey);
  const body = { address: wallet.address, deposit: '1' };
  const answer = lab.site.web(user, 'POST', SESSIONS, { body });
  await expect.poll(async () => (await storedGas(db)).length).toBe(1);
  expect(await storedGas(db)).toMatchObject([{ userId: user.id, gas: RESERVED }]);
  await owner(`DELETE FROM wallets WHERE user_id = '${user.id}'`);
  run();
  expect((await answer).status).toBe(503);
  expect(await failuresOf(wallet)).toEqual([{ failure: 'unsignable' }]);
  expect(await storedGas(db)).toEqual([]);
});

test('signs no opening of a wallet that has got code since its request', async () => {
  const [wallet, keeper] = [await lab.wallet(ONE), await lab.wallet(0n)];
  const { answer } = await begin(wallet);
  const contract = await lab.chain.deployWallet(keeper);
  await setCode(wallet.lower, `0xef0100${contract.slice(2)}`);
  run();
  expect((await answer).status).toBe(503);
  expect(await failuresOf(wallet)).toEqual([{ failure: 'refused' }]);
  expect(await storedGas(lab.site.database.db)).toMatchObject([{ gas: 0, hasFailed: true }]);
});

test('checks the code, the signature and the call of an opening as of one block', async () => {
  const wallet = await lab.wallet(ONE);
  await setCode(wallet.lower, ACCEPTS_ALL);
  const { answer } = await begin(wallet);
  const seen: string[][] = [];
  lab.signersNode.fate = (method, body) => {
    if (!['eth_getCode', 'eth_call', 'eth_simulateV1'].includes(method)) return undefined;
    const { params } = JSON.parse(body) as { readonly params: readonly [unknown, string] };
    seen.push([method, params[1]]);
    return undefined;
  };
  run();
  expect((await answer).status).toBe(201);
  lab.signersNode.fate = () => undefined;
  const [[, block = ''] = []] = seen;
  expect(block).toMatch(/^0x[\da-f]+$/);
  expect(seen.toSorted()).toEqual([
    ['eth_call', block],
    ['eth_getCode', block],
    ['eth_simulateV1', block],
  ]);
});

test('checks the number of reverted openings again for a wallet that has got code since its request', async () => {
  const wallet = await lab.wallet(ONE);
  const { answer } = await begin(wallet);
  await setCode(wallet.lower, ACCEPTS_ALL);
  await addFailed(wallet, 20, { failure: 'reverted', address: `'0x' || lpad(to_hex(n), 40, '0')` });
  run();
  expect((await answer).status).toBe(503);
  expect(await failuresOf(wallet)).toEqual([{ failure: 'refused' }]);
  await owner(`DELETE FROM payment_sessions WHERE failure = 'reverted'`);
});

test('requires an authorization of five minutes for a new hold, and not for an open one', async () => {
  run();
  const wallet = await lab.wallet(ONE);
  const short = await open(wallet, { left: 290 });
  expect(short).toMatchObject({
    status: 401,
    body: { code: 'AUTHORIZATION_REQUIRED', error: expect.stringContaining('five minutes') },
  });
  expect(await failuresOf(wallet)).toEqual([]);
  expect((await open(wallet, { left: 330 })).status).toBe(201);
  const found = await open(wallet, { left: 60 });
  expect(found).toMatchObject({ status: 200, body: { session: { status: 'active' } } });
});
