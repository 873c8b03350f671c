import { randomBytes, randomUUID } from 'node:crypto';
import type { Hex } from 'viem';
import { generatePrivateKey, type PrivateKeyAccount } from 'viem/accounts';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { Listening } from '../../../api/http/server.js';
import { createWeb } from '../../../api/web/web.js';
import { AccountDeletions } from '../../../src/accounts/accounts/account-deletions.js';
import { SessionDebits } from '../../../src/gateway/session-debits.js';
import { sessionPaymentSource } from '../../../src/gateway/session-purse.js';
import { shownAddress } from '../../../src/money/chain/address.js';
import { balanceOf } from '../../../src/money/ledger/ledger.js';
import { paymentSessions as paymentSessionsTable } from '../../../src/platform/database/tables/payment-sessions.js';
import { formatAmount } from '../../../src/types/money.js';
import { sessionAccount } from '../../../src/money/sessions/causes.js';
import { Escrow, escrowTerms } from '../../../src/money/sessions/escrow.js';
import { PaymentSessions } from '../../../src/money/sessions/payment-sessions.js';
import { newSessionToken, storedOf } from '../../../src/money/sessions/session-token.js';
import { SessionWatch } from '../../../src/money/sessions/session-watch.js';
import { sealKey } from '../../../src/money/wallets/wallet-keys.js';
import { queryRows } from '../../platform/database/catalog.js';
import { textsOfRows, tracesOf } from '../../platform/database/traces.js';
import { PLATFORM } from '../../../src/money/chain/chain-node.js';
import { PATH_USD } from '../../support/chain/chain.js';
import { keptKeysOf, secretsOfMoneyIn } from '../../support/chain/money-secrets.js';
import { call, newAddress, type CallOptions } from '../../support/http.js';
import { insertRow } from '../../support/insert-row.js';
import { gasBudget } from '../gas/support.js';
import { walletSite, type Person } from '../wallets/support.js';
import { ONE, sessionLab, type SessionLab, type Wallet } from './support.js';

const attack = { tags: 'attack' };
const SESSIONS = '/api/wallet/sessions';
const FULL = /^ses_[\w-]{43}$/;
const MASKED = /^ses_…[\w-]{4}$/;

let lab: SessionLab;
/** Web API on the same platform whose requests time out after 200 ms. */
let hasty: Listening;
let stop = () => Promise.resolve();
beforeAll(async () => {
  lab = await sessionLab();
  const { dependencies, database } = lab.site;
  const { chain: node, log, secrets, settings } = dependencies;
  const terms = escrowTerms(settings.chain, settings.paymentSessions);
  const paymentSessions = new PaymentSessions({
    database: database.db,
    secrets,
    node,
    log,
    payments: lab.payments,
    gas: gasBudget(database.db),
    escrow: terms && new Escrow(node, terms),
    openingMs: 200,
    closingMs: 200,
    watch: new SessionWatch(database.db),
  });
  hasty = await createWeb({ ...dependencies, paymentSessions }).listen('127.0.0.1', 0);
});
afterAll(async () => {
  await hasty?.close();
  await lab?.close();
});
afterEach(async () => {
  await stop();
  stop = () => Promise.resolve();
});

const run = () => {
  stop = lab.run();
};
const post = (body: unknown, user?: Person, options?: CallOptions) =>
  lab.site.web(user, 'POST', SESSIONS, { body, ...options });
const show = (query: string, user?: Person) => lab.site.web(user, 'GET', `${SESSIONS}?${query}`);

/** Requests a session with the wallet's own signature. */
async function open(wallet: PrivateKeyAccount, deposit = 5n, user?: Person, options?: CallOptions) {
  const authorization = await lab.sign(wallet, deposit * ONE);
  const body = { address: wallet.address, deposit: `${deposit}.00`, authorization };
  return { body, answer: await post(body, user, options) };
}

const rowsOf = ({ lower }: Wallet) =>
  lab.site.database.db.asPlatform().query<{
    id: string;
    state: string;
    failure: string | null;
    userId: string | null;
  }>(
    `SELECT id, state, failure, user_id AS "userId" FROM payment_sessions
      WHERE address = $lower ORDER BY created_at, id`,
    { lower },
  );

/** Creates a wallet whose key is stored for a user or for one of the user's agents. */
async function keptWallet(
  user: Person,
  deposited: bigint,
  kind: 'imported' | 'agent' = 'imported',
): Promise<Wallet> {
  const privateKey = generatePrivateKey();
  const sealed = sealKey(lab.site.dependencies.secrets, user.id, privateKey);
  await lab.site.database.db.asUser(user.id).transaction((db) =>
    db.Wallet.create({
      id: randomUUID(),
      userId: user.id,
      kind,
      ...sealed,
      brought: kind === 'imported',
    }),
  );
  return lab.wallet(deposited, privateKey);
}

const close = (id: string) => lab.site.web(undefined, 'DELETE', `${SESSIONS}?sessionId=${id}`);

/** Holds and posts an amount for a session, as a debit does. */
async function deliver(wallet: Wallet, amount: bigint): Promise<void> {
  const [row] = await rowsOf(wallet);
  const { db } = lab.site.database;
  const settings = {
    settleThreshold: 100n * ONE,
    settleIntervalMs: 3_600_000,
    maxAgeMs: 86_400_000,
    holdMs: 172_800_000,
  };
  const purse = sessionPaymentSource(db, row?.id ?? '', settings, new SessionDebits(db, settings));
  const debit = { id: randomUUID(), plugin: 'test', action: 'deliver', amount };
  expect(await purse.hold(debit)).toBeUndefined();
  await purse.post(debit);
}

describe('payment sessions', () => {
  test("opens a payment session with the wallet's signature and books its deposit in the ledger", async () => {
    run();
    const wallet = await lab.wallet(5n * ONE);
    const { answer } = await open(wallet);
    expect([answer.status, answer.body]).toEqual([
      201,
      {
        session: {
          id: expect.stringMatching(FULL),
          userAddress: wallet.address,
          deposit: '5.000000',
          spent: '0.000000',
          remaining: '5.000000',
          vouchers: [],
          status: 'active',
          createdAt: expect.any(Number),
          lastSettledAt: null,
        },
      },
    ]);
    const [row] = await rowsOf(wallet);
    const account = `session:${row?.id}` as const;
    const balance = await balanceOf(lab.site.database.db.asPlatform(), account, 'pathusd');
    expect(balance).toEqual({ balance: 5n * ONE, held: 0n });
    const { id } = answer.body.session;
    expect((await show(`sessionId=${id}`)).body).toEqual(answer.body);
    const listed = await show(`address=${wallet.address}`);
    expect(listed.body).toEqual({
      sessions: [{ ...answer.body.session, id: expect.stringMatching(MASKED) }],
    });
    // The existing session is returned before the escrow balance, now 0, is checked.
    const again = await open(wallet);
    expect([again.answer.status, again.answer.body]).toEqual([
      200,
      { ...answer.body, note: expect.any(String) },
    ]);
  });

  test('signs on the platform for a stored wallet of the signed-in user', async () => {
    run();
    const ada = await lab.site.person();
    const wallet = await keptWallet(ada, 3n * ONE);
    const body = { address: wallet.address, deposit: '3' };
    expect((await post(body)).status).toBe(401);
    const ofAgent = await keptWallet(ada, 3n * ONE, 'agent');
    expect((await post({ ...body, address: ofAgent.address }, ada)).status).toBe(401);
    const made = await post(body, ada);
    expect([made.status, made.body.session.id]).toEqual([201, expect.stringMatching(FULL)]);
    expect(await rowsOf(wallet)).toMatchObject([{ state: 'active', userId: ada.id }]);
    const again = await post(body, ada);
    expect([again.status, again.body.session.id]).toEqual([200, made.body.session.id]);
    const listed = await show(`address=${wallet.address}`, ada);
    expect(listed.body.sessions[0].id).toBe(made.body.session.id);
  });

  test('creates one session for fifty concurrent requests', async () => {
    run();
    const wallet = await lab.wallet(100n * ONE);
    const answers = await Promise.all(Array.from({ length: 50 }, () => open(wallet, 2n)));
    const statuses = answers.map(({ answer }) => answer.status).sort();
    expect(statuses).toEqual([...Array.from({ length: 49 }, () => 200), 201]);
    const ids = new Set(answers.map(({ answer }) => answer.body.session.id));
    expect([ids.size, await rowsOf(wallet)]).toEqual([1, [expect.anything()]]);
  });

  test('fails a session whose escrow balance is withdrawn before the hold, and then opens another session', async () => {
    const wallet = await lab.wallet(5n * ONE);
    const pending = open(wallet);
    await expect.poll(() => rowsOf(wallet)).toMatchObject([{ state: 'opening' }]);
    await lab.withdraw(wallet, 4n * ONE);
    run();
    const { answer } = await pending;
    expect([answer.status, answer.body]).toEqual([
      402,
      {
        error: expect.any(String),
        code: 'ESCROW_INSUFFICIENT',
        available: '1.000000',
        required: '5.000000',
        escrow: shownAddress(lab.escrow),
        token: '0x20C0000000000000000000000000000000000000',
        chainId: 4217,
      },
    ]);
    expect(await rowsOf(wallet)).toMatchObject([{ state: 'failed' }]);
    expect((await open(wallet, 1n)).answer.status).toBe(201);
    expect((await show(`address=${wallet.address}`)).body.sessions).toHaveLength(1);
  });

  test('answers 503 while a session opens slowly, and returns the opened session on a retry', async () => {
    const wallet = await lab.wallet(5n * ONE);
    const authorization = await lab.sign(wallet, 5n * ONE);
    const body = { address: wallet.address, deposit: '5.00', authorization };
    const ask = async () => {
      const { headers, status } = await call(hasty.url, 'POST', SESSIONS, { body });
      expect([status, headers.get('retry-after')]).toEqual([503, '5']);
      return rowsOf(wallet);
    };
    // The request may time out before the row exists.
    await expect.poll(ask).toMatchObject([{ state: 'opening' }]);
    expect(await ask()).toHaveLength(1);
    run();
    const again = await post(body);
    expect([again.status, again.body.session]).toMatchObject([
      200,
      { id: expect.stringMatching(MASKED), deposit: '5.000000', status: 'active' },
    ]);
    const reopened = await open(wallet);
    expect(reopened.answer.body.session.id).toMatch(FULL);
    expect(await rowsOf(wallet)).toMatchObject([{ state: 'active' }]);
  });

  test('does not open a session if the stored key is deleted before it signs', async () => {
    const ada = await lab.site.person();
    const wallet = await keptWallet(ada, 3n * ONE);
    const pending = post({ address: wallet.address, deposit: '3' }, ada);
    await expect.poll(() => rowsOf(wallet)).toMatchObject([{ state: 'opening' }]);
    await queryRows(
      lab.site.database.ownerUrl,
      `DELETE FROM wallets WHERE address = '${wallet.lower}'`,
    );
    run();
    expect((await pending).status).toBe(503);
    expect(await rowsOf(wallet)).toMatchObject([{ state: 'failed', failure: 'unsignable' }]);
  });

  test('does not open a session while the chain is unavailable, and answers with Retry-After', async () => {
    const { chain } = lab.site.dependencies.settings;
    const away = await walletSite({
      CHAIN_RPC_URL: 'http://127.0.0.1:9',
      ESCROW_ADDRESS: lab.escrow,
      OPERATOR_ADDRESS: chain.operator?.address,
      TREASURY_ADDRESS: chain.treasury,
    });
    try {
      const wallet = await lab.wallet(0n);
      const authorization = await lab.sign(wallet, ONE);
      const body = { address: wallet.address, deposit: '1', authorization };
      const answer = await away.web(undefined, 'POST', SESSIONS, { body });
      expect([answer.status, answer.body.error]).toEqual([503, 'Chain unavailable']);
      expect(answer.headers.get('retry-after')).toBe('5');
    } finally {
      await away.close();
    }
  });

  test('keeps and settles the session of a deleted account without any trace of its owner', async () => {
    run();
    const ada = await lab.site.person();
    const wallet = await keptWallet(ada, 3n * ONE);
    const { id } = (await post({ address: wallet.address, deposit: '3' }, ada)).body.session;
    await deliver(wallet, ONE);
    const { db } = lab.site.database;
    const deletion = { userId: ada.id, requestId: 'deletion' };
    await db.asUser(ada.id).transaction((tx) => tx.AccountDeletion.create(deletion));
    await new AccountDeletions(db, []).erase(ada.id);
    expect(await rowsOf(wallet)).toMatchObject([{ state: 'active', userId: null }]);
    await deliver(wallet, ONE);
    expect(await close(id)).toMatchObject({
      status: 200,
      body: { settled: '2.000000', refunded: '1.000000' },
    });
    expect(await tracesOf(db, { id: ada.id, email: 'no mail', name: 'no name' })).toEqual([]);
  });

  test('refuses a malformed request first, then an unsigned request, then an uncovered request', async () => {
    const wallet = await lab.wallet(ONE);
    const authorization = await lab.sign(wallet, 2n * ONE);
    const good = { address: wallet.address, deposit: '2', authorization };
    const malformed = [
      { ...good, address: '0x1' },
      ...['0.99', '100.01', '1e1', '2.0000001', '-2', 2].map((deposit) => ({ ...good, deposit })),
      { ...good, authorization: { ...authorization, nonce: '0x1' } },
      { ...good, authorization: { ...authorization, signature: 'no' } },
    ];
    for (const body of malformed) expect((await post(body)).status).toBe(400);
    const { address, deposit } = good;
    const unsigned = await post({ address, deposit });
    expect([unsigned.status, unsigned.body]).toMatchObject([
      401,
      { error: 'Wallet authorization required', code: 'AUTHORIZATION_REQUIRED' },
    ]);
    expect((await post(good)).status).toBe(402);
    expect((await open(wallet, 100n)).answer.status).toBe(402);
    for (const query of [
      ...['', 'sessionId=', 'address=0x', 'address=', 'sessionId=ses_1&cursor=WyIxIl0'],
      ...[`address=${address}&sessionId=ses_1`, `address=${address}&sessionId=`],
      ...[`address=${address}&vouchers=all`, 'sessionId=ses_1&vouchers=some'],
      ...['sessionId=ses_1&vouchers=all&cursor=', 'sessionId=ses_1&vouchers=all&cursor=x'],
    ]) {
      expect([query, (await show(query)).status]).toEqual([query, 400]);
    }
    const unknown = await show('sessionId=ses_1');
    expect([unknown.status, unknown.body]).toEqual([404, { error: 'Session not found' }]);
  });

  test('reads and closes a session by its id in a header', attack, async () => {
    run();
    const wallet = await lab.wallet(5n * ONE);
    const { address } = wallet;
    const opened = (await open(wallet)).answer.body;
    const byHeader = (method: string, id: string, query = '') =>
      lab.site.web(undefined, method, `${SESSIONS}${query}`, { headers: { 'x-session-id': id } });
    const { id } = opened.session;
    expect(await byHeader('GET', id)).toMatchObject({ status: 200, body: opened });
    expect((await byHeader('GET', id, `?sessionId=${id}`)).status).toBe(200);
    for (const query of ['?sessionId=ses_1', `?address=${address}`]) {
      expect((await byHeader('GET', id, query)).status).toBe(400);
    }
    expect((await byHeader('GET', 'ses_1')).status).toBe(404);
    expect((await byHeader('DELETE', id, '?sessionId=ses_1')).status).toBe(400);
    expect((await byHeader('DELETE', 'ses_1')).status).toBe(404);
    const missing = await lab.site.web(undefined, 'DELETE', SESSIONS);
    expect([missing.status, missing.body]).toEqual([400, { error: 'sessionId required' }]);
    expect(await byHeader('DELETE', id)).toMatchObject({
      status: 200,
      body: { session: { id, status: 'closed' } },
    });
  });

  test('opens a session with the typed data of the refusal, unchanged', async () => {
    run();
    const wallet = await lab.wallet(2n * ONE);
    const asked = { address: wallet.address, deposit: '2' };
    const { typedData } = (await post(asked)).body;
    const signature = await wallet.signTypedData(typedData);
    const { deadline, nonce } = typedData.message;
    const made = await post({ ...asked, authorization: { nonce, deadline, signature } });
    expect(made.status).toBe(201);
  });
});

test('lists the latest fifty sessions of a wallet, newest first', async () => {
  const { lower } = await lab.wallet(0n);
  const SECONDS = 52;
  await queryRows(
    lab.site.database.ownerUrl,
    `INSERT INTO payment_sessions
       (id, token_hash, token_end, sealed_token, address, chain_id, escrow, hold_id, nonce,
        authorization_deadline, deposit, state, created_at, opened_at, hold_expires_at, closing_at, closed_at)
     SELECT gen_random_uuid(), '${lower}' || n, 'last', 'sealed', '${lower}', 4217, '${lab.escrow}',
            '0x' || lpad(to_hex(n), 64, '0'), '0x' || lpad(to_hex(n), 64, '0'),
            now(), 1000000, 'closed', to_timestamp(n), now(), now(), now(), now()
       FROM generate_series(1, ${SECONDS}) n ORDER BY random()`,
  );
  const { body } = await show(`address=${lower}`);
  const times = body.sessions.map(({ createdAt }: { createdAt: number }) => createdAt / 1_000);
  expect(times).toEqual(Array.from({ length: 50 }, (_, index) => SECONDS - index));
});

test('opens no session if the contract differs from the settings', async () => {
  const wallet = await lab.wallet(ONE);
  const authorization = await lab.sign(wallet, ONE);
  const { chain: node, log, secrets, settings } = lab.site.dependencies;
  const terms = escrowTerms(settings.chain, settings.paymentSessions);
  if (!terms) throw new Error('the lab must have an escrow');
  const differing = {
    operator: wallet.lower,
    treasury: wallet.lower,
    holdSeconds: terms.holdSeconds + 1n,
  };
  const waiting = () => Promise.reject(new Error('the test must not wait'));
  for (const [name, value] of Object.entries(differing)) {
    const escrow = new Escrow(node, { ...terms, [name]: value });
    await expect(escrow.available(wallet.lower, PLATFORM)).rejects.toMatchObject({
      differing: [name],
    });
    const sessions = new PaymentSessions({
      database: lab.site.database.db,
      secrets,
      node,
      log,
      escrow,
      payments: lab.payments,
      gas: gasBudget(lab.site.database.db),
      watch: { left: waiting },
    });
    const wanted = {
      address: wallet.lower,
      deposit: ONE,
      authorization: { ...authorization, deadline: BigInt(authorization.deadline) },
    };
    const opening = sessions.open(
      { userId: undefined, requestId: 'r', owner: 'client', client: '192.0.2.1' },
      wanted,
      new AbortController().signal,
    );
    await expect(opening).rejects.toMatchObject({ status: 503 });
  }
  expect(await rowsOf(wallet)).toEqual([]);
});

test('ignores a session on another chain: it neither replaces nor blocks a session on this chain', async () => {
  run();
  const wallet = await lab.wallet(5n * ONE);
  const there = await open(wallet, 2n);
  expect(there.answer.status).toBe(201);
  await queryRows(
    lab.site.database.ownerUrl,
    `UPDATE payment_sessions SET chain_id = 8453 WHERE address = '${wallet.lower}'`,
  );
  const here = await open(wallet, 3n);
  expect([here.answer.status, here.answer.body]).toMatchObject([
    201,
    { session: { deposit: '3.000000', status: 'active' } },
  ]);
  expect(await rowsOf(wallet)).toHaveLength(2);
});

describe('closing a session', () => {
  const balance = ({ lower }: Wallet) =>
    lab.site.dependencies.chain.onBehalfOf(PLATFORM).tokenBalance(PATH_USD, lower);
  test('settles the delivered amount and refunds the rest once, however often closing is requested', async () => {
    run();
    const wallet = await lab.wallet(5n * ONE);
    const { id } = (await open(wallet)).answer.body.session;
    await deliver(wallet, 2n * ONE);
    const before = await balance(wallet);
    const [first, second] = await Promise.all([close(id), close(id)]);
    const third = await close(id);
    for (const { body, status } of [first, second, third]) {
      expect([status, body]).toEqual([
        200,
        {
          session: {
            id,
            userAddress: wallet.address,
            status: 'closed',
            vouchers: [],
            deposit: '5.000000',
            spent: '2.000000',
            remaining: '3.000000',
            createdAt: expect.any(Number),
            lastSettledAt: expect.any(Number),
          },
          settled: '2.000000',
          refunded: '3.000000',
          transactions: [expect.stringMatching(/^0x[\da-f]{64}$/)],
        },
      ]);
    }
    expect(third.body).toEqual(first.body);
    expect((await balance(wallet)) - before).toBe(3n * ONE);
    // A new session is allowed, but the wallet has no money left in the escrow.
    expect((await open(wallet)).answer).toMatchObject({
      status: 402,
      body: { available: '0.000000' },
    });
  });

  test('answers 202 while the chain settles slowly, and refuses debits until the session is closed', async () => {
    run();
    const wallet = await lab.wallet(5n * ONE);
    const { id } = (await open(wallet)).answer.body.session;
    await deliver(wallet, 1n * ONE);
    await stop();
    const { body, status } = await call(hasty.url, 'DELETE', `${SESSIONS}?sessionId=${id}`);
    expect([status, body]).toMatchObject([
      202,
      { session: { id, status: 'settling' }, refunded: '0.000000', transactions: [] },
    ]);
    await expect(deliver(wallet, 1n * ONE)).rejects.toThrow();
    run();
    expect(await close(id)).toMatchObject({
      status: 200,
      body: { settled: '1.000000', refunded: '4.000000' },
    });
  });

  test(
    'closes during 200 debits: refuses debits once settling starts, and settles exactly the delivered amount',
    attack,
    async () => {
      run();
      const wallet = await lab.wallet(5n * ONE);
      const { id } = (await open(wallet)).answer.body.session;
      const had = await balance(wallet);
      const price = ONE / 100n;
      const debits = (count: number) =>
        Array.from({ length: count }, () =>
          deliver(wallet, price).then(
            () => true,
            () => false,
          ),
        );
      const before = debits(100);
      await Promise.race(before);
      const closing = close(id);
      const concurrent = debits(100);
      const { body, status } = await closing;
      expect(await Promise.all(debits(10))).not.toContain(true);
      const served = (await Promise.all([...before, ...concurrent])).filter(Boolean).length;
      const settled = price * BigInt(served);
      expect([status, body]).toMatchObject([
        200,
        { settled: formatAmount(settled), refunded: formatAmount(5n * ONE - settled) },
      ]);
      const [row] = await rowsOf(wallet);
      const vouchers = await lab.site.database.db.asPlatform().query(
        `SELECT count(*)::integer AS count, sum(amount)::text AS sum, max(cumulative)::text AS last,
              (SELECT count(*)::integer FROM ledger_holds
                WHERE debit = 'session:' || $id AND state = 'open') AS held
         FROM payment_vouchers WHERE session_id = $id`,
        { id: row?.id },
      );
      const sum = String(settled);
      expect(vouchers).toEqual([{ count: served, sum, last: sum, held: 0 }]);
      expect((await balance(wallet)) - had).toBe(5n * ONE - settled);
    },
  );

  test('refuses to close a session that does not exist', async () => {
    expect((await close('')).status).toBe(400);
    expect(await close(`ses_${'A'.repeat(43)}`)).toMatchObject({
      status: 404,
      body: { error: 'Session not found' },
    });
  });
});

test('returns the current state to every waiter whose wait is aborted', async () => {
  const { db } = lab.site.database;
  const [watch, leaving] = [new SessionWatch(db), new AbortController()];
  const id = randomUUID();
  const hex = (length: number) => `0x${randomBytes(length).toString('hex')}`;
  await insertRow(db.asPlatform(), paymentSessionsTable, {
    id,
    ...storedOf(newSessionToken()),
    sealedToken: 'sealed',
    address: hex(20),
    nonce: hex(32),
    chainId: '1',
    escrow: hex(20),
    holdId: hex(32),
    authorizationDeadline: new Date(),
    deposit: String(ONE),
  });
  const ask = async () => (await watch.left('opening', id, leaving.signal))?.state;
  const waiting = Array.from({ length: 500 }, ask);
  // One more than may wait: it is answered at once.
  expect(await ask()).toBe('opening');
  leaving.abort();
  expect(new Set(await Promise.all(waiting))).toEqual(new Set(['opening']));
});

describe('a client without the wallet', () => {
  test('opens no session on the deposit of a foreign wallet and gets no id', attack, async () => {
    run();
    const [ada, bob] = [await lab.wallet(5n * ONE), await lab.wallet(0n)];
    const foreign = await lab.sign(bob, 5n * ONE, { payer: ada.address });
    const late = await lab.sign(ada, 5n * ONE, { deadline: 1_000_000n });
    const early = await lab.sign(ada, 5n * ONE, { deadline: 99_999_999_999n });
    const other = await lab.sign(ada, 4n * ONE);
    for (const authorization of [foreign, late, early, other]) {
      const refused = await post({ address: ada.address, deposit: '5', authorization });
      expect([refused.status, refused.body.code]).toEqual([401, 'AUTHORIZATION_REQUIRED']);
    }
    const made = await open(ada);
    expect(made.answer.status).toBe(201);
    // The authorization is now public on the chain.
    const replayed = await post(made.body);
    expect([replayed.status, replayed.body.session.id]).toEqual([
      200,
      expect.stringMatching(MASKED),
    ]);
    for (const authorization of [foreign, undefined]) {
      const refused = await post({ address: ada.address, deposit: '5', authorization });
      expect(refused.status).toBe(401);
    }
    const mallory = await lab.site.person();
    const listed = await show(`address=${ada.address}`, mallory);
    expect(listed.body.sessions[0].id).toMatch(MASKED);
    // The full id is shown once for an authorization that never reaches the chain; a replay gets it
    // masked.
    const asked = await open(ada);
    expect(asked.answer.body.session.id).toBe(made.answer.body.session.id);
    expect((await post(asked.body)).body.session.id).toMatch(MASKED);
  });

  test(
    "a client without the wallet gets no id by replaying the wallet's request with its idempotency key from its address",
    attack,
    async () => {
      run();
      const same = { from: newAddress(), headers: { 'idempotency-key': 'guessed' } };
      const wallet = await lab.wallet(5n * ONE);
      const { body, answer } = await open(wallet, 5n, undefined, same);
      expect([answer.status, answer.body.session.id]).toEqual([201, expect.stringMatching(FULL)]);
      const repeated = await post(body, undefined, same);
      expect([repeated.status, repeated.body.session.id]).toEqual([
        200,
        expect.stringMatching(MASKED),
      ]);
      // The wallet has lost the response and signs a new authorization.
      const reopened = await open(wallet, 5n, undefined, same);
      expect([reopened.answer.status, reopened.answer.body.session.id]).toEqual([
        200,
        answer.body.session.id,
      ]);
    },
  );

  test(
    'a client without the wallet gets no id with an authorization that the platform signed for a stored wallet',
    attack,
    async () => {
      run();
      const ada = await lab.site.person();
      const wallet = await keptWallet(ada, 3n * ONE);
      const body = { address: wallet.address, deposit: '3' };
      expect((await post(body, ada)).status).toBe(201);
      const [signed] = await lab.site.database.db.asPlatform().query<{
        readonly nonce: Hex;
        readonly deadline: number;
      }>(
        `SELECT nonce, extract(epoch FROM authorization_deadline)::integer AS deadline
         FROM payment_sessions WHERE address = $lower`,
        { lower: wallet.lower },
      );
      if (!signed) throw new Error('no session was created');
      // Nonce and deadline are public in the opening transaction.
      const { deadline, nonce } = signed;
      const authorization = await lab.sign(wallet, 3n * ONE, { nonce, deadline: BigInt(deadline) });
      for (const by of [undefined, await lab.site.person()]) {
        const shown = await post({ ...body, authorization }, by);
        expect([shown.status, shown.body.session.id]).toEqual([200, expect.stringMatching(MASKED)]);
      }
    },
  );

  test(
    'a client without the wallet gets no vouchers of a session, which only its owner may read',
    attack,
    async () => {
      run();
      const ada = await lab.site.person();
      const wallet = await keptWallet(ada, 3n * ONE);
      const body = { address: wallet.address, deposit: '3' };
      const { session } = (await post(body, ada)).body;
      await deliver(wallet, ONE);
      const bought = [expect.objectContaining({ plugin: 'test', amount: '1.000000' })];
      const byAddress = `address=${wallet.address}`;
      for (const stranger of [undefined, await lab.site.person()]) {
        const [listed] = (await show(byAddress, stranger)).body.sessions;
        expect(listed).toMatchObject({ spent: '1.000000', vouchers: [] });
      }
      expect((await show(byAddress, ada)).body.sessions[0].vouchers).toEqual(bought);
      expect((await show(`sessionId=${session.id}`)).body.session.vouchers).toEqual(bought);
      // Repeats a public authorization.
      const signed = await lab.wallet(5n * ONE);
      const made = await open(signed);
      await deliver(signed, ONE);
      const masked = await post(made.body);
      expect(masked.body.session).toMatchObject({ spent: '1.000000', vouchers: [] });
    },
  );

  test('opens no session with an authorization that was used before', attack, async () => {
    run();
    const wallet = await lab.wallet(5n * ONE);
    const { body } = await open(wallet, 2n);
    // This authorization only requested the id of the session.
    const shown = await open(wallet, 2n);
    expect(shown.answer.status).toBe(200);
    await lab.site.database.db.asPlatform().query(
      `UPDATE payment_sessions SET state = 'closed', closing_at = now(), closed_at = now()
        WHERE address = $lower`,
      { lower: wallet.lower },
    );
    for (const good of [body, shown.body]) expect((await post(good)).status).toBe(401);
    await lab.site.database.db.asPlatform().query('DELETE FROM used_nonces');
    expect((await post(body)).status).toBe(401);
    expect(await rowsOf(wallet)).toHaveLength(1);
  });

  test(
    'a client without the wallet gets no id with an authorization that only the chain remembers after a database restore',
    attack,
    async () => {
      run();
      const wallet = await lab.wallet(15n * ONE);
      const { body } = await open(wallet, 5n);
      const forget = () =>
        queryRows(
          lab.site.database.ownerUrl,
          `DELETE FROM payment_sessions WHERE address = '${wallet.lower}'; DELETE FROM used_nonces`,
        );
      await forget();
      const lost = await post(body);
      expect([lost.status, lost.body.code]).toEqual([401, 'AUTHORIZATION_REQUIRED']);
      expect(await rowsOf(wallet)).toEqual([]);
      const another = await open(wallet, 2n);
      expect(another.answer.status).toBe(201);
      const replayed = await post(body);
      expect([replayed.status, replayed.body.session.id]).toEqual([
        200,
        expect.stringMatching(MASKED),
      ]);
      await forget();
    },
  );

  test('writes no session id and no key to logs or database rows', attack, async () => {
    run();
    const ada = await lab.site.person();
    const wallet = await keptWallet(ada, ONE);
    const made = await post({ address: wallet.address, deposit: '1' }, ada);
    expect([made.status, made.body.session.id]).toEqual([201, expect.stringMatching(FULL)]);
    await deliver(wallet, ONE);
    await close(made.body.session.id);
    const { database, dependencies, logged } = lab.site;
    const platform = database.db.asPlatform();
    const keys = await keptKeysOf(platform, dependencies.secrets);
    expect(keys.length).toBeGreaterThan(0);
    const rows = await textsOfRows(platform);
    const [row] = await rowsOf(wallet);
    expect(rows.some((text) => text.includes(`settlement:${row?.id}`))).toBe(true);
    expect(secretsOfMoneyIn([...rows, ...logged], keys)).toEqual([]);
  });
});

test('accepts the signature of a smart wallet as its contract decides', async () => {
  run();
  const owner = await lab.wallet(0n);
  const address = await lab.chain.deployWallet(owner);
  // Only the signature is tested: the answer 402 (no deposit) means that it was accepted.
  const authorization = await lab.sign(owner, ONE, { payer: address });
  const asked = { address, deposit: '1', authorization };
  expect((await post(asked)).status).toBe(402);
  const foreign = await lab.sign(await lab.wallet(0n), ONE, { payer: address });
  expect((await post({ ...asked, authorization: foreign })).status).toBe(401);
});

// Last test: it moves the chain's clock forward.
test('opens no session with an authorization that expires before it is on the chain', async () => {
  const wallet = await lab.wallet(5n * ONE);
  const pending = open(wallet);
  await expect.poll(() => rowsOf(wallet)).toMatchObject([{ state: 'opening' }]);
  await lab.pass(2 * 60 * 60);
  run();
  const { answer } = await pending;
  expect(answer.status).toBe(503);
  const failed = { state: 'failed', failure: 'refused' };
  await expect.poll(() => rowsOf(wallet)).toMatchObject([failed]);
  const { db } = lab.site.database;
  const [row] = await rowsOf(wallet);
  const held = await balanceOf(db.asPlatform(), sessionAccount(row?.id ?? ''), 'pathusd');
  expect(held.balance).toBe(0n);
});
