import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { shownAddress } from '../../../src/money/chain/address.js';
import { ParentGoneError } from '../../../src/agents/clones/clone-errors.js';
import { ClonePayments } from '../../../src/agents/clones/clone-payments.js';
import { clonePaymentText } from '../../../src/agents/clones/clones.js';
import { balanceOf } from '../../../src/money/ledger/ledger.js';
import { queryRows } from '../../platform/database/catalog.js';
import { call } from '../../support/http.js';
import { cloneDesk, CONFIRMATIONS, transfer, TREASURY, WHOLE, type CloneDesk } from './support.js';

const MISSED = 10;

let desk: CloneDesk;
let user: Awaited<ReturnType<CloneDesk['user']>>;
beforeAll(async () => {
  desk = await cloneDesk();
  user = await desk.user();
});
afterAll(() => desk?.close());

type Proof = Awaited<ReturnType<CloneDesk['pay']>>;

/** Returns a request for a clone of a new agent of a user. */
async function request(given: Readonly<Record<string, unknown>> = {}, of = user) {
  const { id: parentAgentId } = await desk.parentOf(of);
  const paymentProof: Proof = await desk.pay();
  return { parentAgentId, name: `clone ${randomUUID()}`, paymentProof, ...given };
}

const owner = (sql: string) => queryRows<Record<string, unknown>>(desk.database.ownerUrl, sql);
const agentOf = async (id: string) => (await owner(`SELECT * FROM agents WHERE id = '${id}'`))[0];
const operationsOf = (id: string) =>
  owner(`SELECT kind, status, requested_by FROM operations WHERE agent_id = '${id}'`);

/** Checks the payment and hands the clone over, as its workflow run does. */
async function goOn(id: string) {
  const state = await desk.payments.check(id);
  return { state, handed: state === 'paid' ? await desk.store.handOver(id) : undefined };
}

/** Leaves an agent as a failed provisioning does. */
const failToComeUp = (id: string) =>
  owner(`UPDATE operations SET status = 'failed', finished_at = now() WHERE agent_id = '${id}';
         UPDATE agents SET status = 'error', status_reason = 'no' WHERE id = '${id}'`);

describe('clone', () => {
  test('a clone is an agent like its parent, with its own payment and the image to provision later', async () => {
    const body = await request({ specialization: 'booking', generation: 2 });
    const answer = await desk.clone(user, body);
    expect(answer).toMatchObject({
      status: 202,
      body: {
        success: true,
        clone: {
          name: body.name,
          parentAgentId: body.parentAgentId,
          status: 'pending',
          generation: 3,
          specialization: 'booking',
        },
      },
    });
    const { id } = answer.body.clone;
    const agent = await agentOf(id);
    expect(agent).toMatchObject({
      user_id: user.id,
      parent_agent_id: body.parentAgentId,
      generation: 3,
      verified: false,
      config: { skills: [], note: 'kept' },
      image: 'image-of-parent',
      started_at: null,
    });
    const { transactionHash: hash } = body.paymentProof;
    expect(
      await owner(`SELECT clone_id, chain_id FROM payment_claims WHERE hash = '${hash}'`),
    ).toEqual([{ clone_id: id, chain_id: '4217' }]);
    expect(await operationsOf(id)).toEqual([]);
  });

  test('a clone defaults to generation 2 and the specialization general', async () => {
    const { body } = await desk.clone(user, await request());
    expect(body.clone).toMatchObject({ generation: 2, specialization: 'general' });
  });

  test('a clone belongs to its parent’s owner if the operator requests it', async () => {
    const answer = await desk.clone(undefined, await request());
    expect(answer.status).toBe(202);
    expect(await agentOf(answer.body.clone.id)).toMatchObject({ user_id: user.id });
  });

  test('a clone can be requested on the web API with the same body', async () => {
    const ask = (path: string, body: unknown) =>
      call(desk.urls.web, 'POST', path, { body, headers: { cookie: user.cookie } });
    const body = await request();
    const made = await ask('/api/agents/clone', body);
    expect(made).toMatchObject({
      status: 202,
      body: { clone: { name: body.name, status: 'provisioning' } },
    });
    expect(await ask('/api/agents/clone', body)).toMatchObject({
      status: 409,
      body: { code: 'PAYMENT_USED', cloneId: made.body.clone.id },
    });
  });

  test('the price of a clone is public, even while the chain is unavailable', async () => {
    const terms = {
      status: 'ok',
      chainId: 4217,
      currency: 'pathUSD',
      decimals: 6,
      price: '1.000000',
      treasury: shownAddress(TREASURY),
      confirmations: CONFIRMATIONS,
    };
    for (const url of [desk.urls.backend, desk.urls.web]) {
      const answer = await call(url, 'GET', '/api/agents/clone');
      expect(answer).toMatchObject({ status: 200, body: { ...terms, chain: 'available' } });
    }
    const blind = await call(desk.urls.blind, 'GET', '/api/agents/clone');
    expect(blind).toMatchObject({ status: 200, body: { ...terms, chain: 'unavailable' } });
  });
});

describe('payment', { tags: 'attack' }, () => {
  test('a payment pays for one clone: of 50 concurrent requests one succeeds', async () => {
    const body = await request();
    const all = await Promise.all(
      Array.from({ length: 50 }, (_, n) =>
        desk.clone(user, { ...body, name: `${body.name} ${n}` }),
      ),
    );
    const made = all.filter(({ status }) => status === 202);
    const refused = all.filter(
      ({ status, body }) => status === 409 && body.code === 'PAYMENT_USED',
    );
    expect([made.length, refused.length]).toEqual([1, 49]);
    expect(await owner(`SELECT FROM agents WHERE name LIKE '${body.name} %'`)).toHaveLength(1);
  });

  test('a used payment stays used, in any spelling of its hash and for any user', async () => {
    const body = await request();
    const { status } = await desk.clone(user, body);
    expect(status).toBe(202);
    const transactionHash = `0x${body.paymentProof.transactionHash.slice(2).toUpperCase()}`;
    const stranger = await desk.user();
    const others = [
      [user, { ...body, name: 'another' }],
      [user, { ...body, paymentProof: { ...body.paymentProof, transactionHash } }],
      [stranger, await request({ paymentProof: body.paymentProof }, stranger)],
    ] as const;
    for (const [who, again] of others) {
      const answer = await desk.clone(who, again);
      expect(answer).toMatchObject({ status: 409, body: { code: 'PAYMENT_USED' } });
      if (who === stranger) expect(answer.body.cloneId).toBeUndefined();
    }
  });

  test('a payment stays used after its clone and account are removed', async () => {
    const gone = await desk.user();
    const body = await request({}, gone);
    const { id } = (await desk.clone(gone, body)).body.clone;
    await owner(`DELETE FROM agents WHERE user_id = '${gone.id}'`);
    expect(await owner(`SELECT FROM clones WHERE id = '${id}'`)).toEqual([]);
    const again = await request({ paymentProof: body.paymentProof });
    expect(await desk.clone(user, again)).toMatchObject({ status: 409 });
  });

  test("a payment from a wallet that is not linked needs the wallet's signature in strict mode", async () => {
    const payer = desk.chain.account(0);
    const body = await request();
    const unsigned = await desk.cloneStrictly(user, body);
    expect(unsigned.body).toMatchObject({ code: 'PAYMENT_INVALID', reason: 'not_linked' });
    const sign = async (signed: typeof body, by = payer) => ({
      ...body,
      paymentProof: {
        ...body.paymentProof,
        signature: await by.signMessage({
          message: clonePaymentText(4217, {
            ...signed,
            paymentProof: { ...signed.paymentProof, amount: WHOLE },
          }),
        }),
      },
    });
    for (const forged of [
      await sign(body, desk.chain.account(1)),
      await sign({ ...body, name: 'another' }),
      await sign({ ...body, parentAgentId: 'another' }),
    ]) {
      expect((await desk.cloneStrictly(user, forged)).body.reason).toBe('not_linked');
    }
    expect(await desk.cloneStrictly(user, await sign(body))).toMatchObject({ status: 202 });
  });

  test('a payment of several calls is their sum, even if the sender pays others in the same transaction', async () => {
    const payer = desk.chain.account(4);
    const half = transfer(TREASURY, WHOLE / 2n);
    const other = transfer('0x2222222222222222222222222222222222222222', WHOLE);
    const hash = await desk.chain.send(payer, [half, other, half]);
    const paymentProof = await desk.proof(payer, hash);
    expect(await desk.clone(user, await request({ paymentProof }))).toMatchObject({ status: 202 });
  });
});

describe('order of refusals', () => {
  test.each([
    ['a hash with a capital X', { transactionHash: `0X${'a'.repeat(64)}` }],
    ['a hash that is too short', { transactionHash: '0xab' }],
    ['less than the price', { amount: '0.999999' }],
    ['seven decimals', { amount: '0.9999999' }],
    ['an amount with a sign', { amount: '+1.0' }],
    ['a number in place of text', { amount: 1 }],
    ['another currency', { currency: 'USDC' }],
    ['another chain', { chainId: 1 }],
    ['no address', { from: '0x12' }],
  ])('%s is refused as malformed, whoever requests it', async (_, wrong) => {
    const body = await request();
    const paymentProof = { ...body.paymentProof, ...wrong };
    const parentAgentId = 'nobody';
    const answer = await desk.cloneBlindly(user, { ...body, parentAgentId, paymentProof });
    expect(answer.status).toBe(400);
  });

  test('a timestamp further ahead than the allowed clock difference is refused as malformed', async () => {
    const body = await request();
    const at = (seconds: number) => {
      const timestamp = Math.floor(Date.now() / 1_000) + seconds;
      return { ...body, paymentProof: { ...body.paymentProof, timestamp } };
    };
    const early = { ...at(330), parentAgentId: 'nobody' };
    expect((await desk.cloneBlindly(user, early)).status).toBe(400);
    expect((await desk.clone(user, at(270))).status).toBe(202);
  });

  test.each([{ generation: 0 }, { generation: 1.5 }, { specialization: 'spy' }, { name: '' }])(
    '%j is refused as malformed',
    async (wrong) => {
      expect((await desk.clone(user, await request(wrong))).status).toBe(400);
    },
  );

  test("checks the parent's owner, then the agent limit, then the chain, then whether the payment is used", async () => {
    const poor = await desk.user('label');
    const body = await request({}, poor);
    const foreign = { ...body, parentAgentId: (await request()).parentAgentId };
    expect(await desk.cloneBlindly(poor, foreign)).toMatchObject({ status: 404 });
    expect(await desk.cloneBlindly(poor, body)).toMatchObject({
      status: 402,
      body: { code: 'AGENT_LIMIT_REACHED', current: 1, limit: 1 },
    });
    const used = await request();
    await desk.clone(user, used);
    const away = await desk.cloneBlindly(user, { ...used, name: 'another' });
    expect(away).toMatchObject({ status: 503, body: { error: 'Chain unavailable' } });
    expect(away.headers.get('retry-after')).toBe('5');
  });

  test('a name already in use claims no payment', async () => {
    const taken = await request();
    await desk.clone(user, taken);
    const body = await request({ name: taken.name });
    expect((await desk.clone(user, body)).status).toBe(409);
    expect(await desk.clone(user, { ...body, name: 'one of its own' })).toMatchObject({
      status: 202,
    });
  });

  test('two concurrent requests at the agent limit admit one, and the refused one keeps its payment', async () => {
    const one = await desk.user('solo');
    const [first, second] = [await request({}, one), await request({}, one)];
    const answers = await Promise.all([first, second].map((body) => desk.clone(one, body)));
    expect(answers.map(({ status }) => status).sort()).toEqual([202, 402]);
    const [claimed] = await owner(
      `SELECT count(*)::int AS count FROM payment_claims WHERE user_id = '${one.id}'`,
    );
    expect(claimed).toEqual({ count: 1 });
  });
});

describe('clone that waits for its payment', () => {
  test('a waiting clone cannot be started, but can be removed', { tags: 'attack' }, async () => {
    const { id } = (await desk.clone(user, await request())).body.clone;
    for (const kind of ['start', 'restart', 'repair', 'reset-empty']) {
      const answer = await desk.ask(user, 'POST', `/api/agents/${id}/${kind}`);
      expect(answer).toMatchObject({ status: 409, body: { error: expect.any(String) } });
    }
    expect(await operationsOf(id)).toEqual([]);
    expect(await desk.ask(user, 'DELETE', `/api/agents/${id}`)).toMatchObject({ status: 200 });
    await desk.mine(CONFIRMATIONS);
    expect((await goOn(id)).state).toBe('over');
  });

  test('a clone is handed over once its payment is final, and the paid amount is booked once', async () => {
    const paymentProof = await desk.pay(WHOLE * 2n);
    const before = await balanceOf(desk.database.db.asPlatform(), 'treasury', 'pathusd');
    const { id } = (await desk.clone(user, await request({ paymentProof }))).body.clone;
    // One block short: another payment has been mined since.
    expect((await goOn(id)).state).toBe('waiting');
    expect(await desk.store.handOver(id)).toBeUndefined();
    expect(await operationsOf(id)).toEqual([]);
    await desk.mine(1);
    const { handed } = await goOn(id);
    expect(handed?.agent).toMatchObject({ agentId: id, provisioned: false });
    // As if the first answer were lost: the same operation is returned again.
    expect(await desk.store.handOver(id)).toEqual(handed);
    expect(await operationsOf(id)).toEqual([
      { kind: 'provision', status: 'requested', requested_by: user.id },
    ]);
    const after = await balanceOf(desk.database.db.asPlatform(), 'treasury', 'pathusd');
    expect(after.balance - before.balance).toBe(WHOLE * 2n);
  });

  test("a clone's payment time is recorded once, and a clone removed after that is not handed over", async () => {
    const { id } = (await desk.clone(user, await request())).body.clone;
    const paidAt = () => owner(`SELECT paid_at::text FROM clones WHERE id = '${id}'`);
    await desk.store.recordPaid(id, WHOLE);
    const first = await paidAt();
    await desk.store.recordPaid(id, WHOLE);
    expect(await paidAt()).toEqual(first);
    await owner(`UPDATE agents SET desired = 'deleted' WHERE id = '${id}'`);
    expect(await desk.store.handOver(id)).toBeUndefined();
    expect(await operationsOf(id)).toEqual([]);
  });

  test('a clone fails if a reorganisation removes its payment, which stays claimed', async () => {
    const parent = await desk.parentOf(user);
    const snapshot = await desk.rpc('evm_snapshot', []);
    const body = { parentAgentId: parent.id, name: randomUUID(), paymentProof: await desk.pay() };
    const { id } = (await desk.clone(user, body)).body.clone;
    expect((await goOn(id)).state).toBe('waiting');
    await desk.rpc('evm_revert', [snapshot]);
    await desk.mine(CONFIRMATIONS + MISSED);
    expect((await goOn(id)).state).toBe('waiting');
    await desk.mine(1);
    expect((await goOn(id)).state).toBe('over');
    expect(await agentOf(id)).toMatchObject({ status: 'error' });
    expect(await operationsOf(id)).toEqual([]);
    // While the payment is missing, the clone cannot be made, and no other clone can use the payment.
    expect((await desk.clone(user, body)).body.code).toBe('PAYMENT_NOT_FOUND');
    const other = await desk.clone(user, { ...body, name: 'another' });
    expect(other.body.code).toBe('PAYMENT_USED');
  });

  test('a clone is made for a payment that a reorganisation has mined again, however much later', async () => {
    const parent = await desk.parentOf(user);
    const snapshot = await desk.rpc('evm_snapshot', []);
    const paid = await desk.pay();
    const raw = await desk.rpc('eth_getRawTransactionByHash', [paid.transactionHash]);
    // A timestamp at the edge of the allowed difference: a few seconds more are too much.
    const paymentProof = { ...paid, timestamp: paid.timestamp - 890 };
    const body = { parentAgentId: parent.id, name: randomUUID(), paymentProof };
    const { id } = (await desk.clone(user, body)).body.clone;
    await desk.rpc('evm_revert', [snapshot]);
    await desk.mine(CONFIRMATIONS + MISSED + 1);
    expect((await goOn(id)).state).toBe('over');
    await desk.rpc('evm_increaseTime', [30]);
    await desk.rpc('eth_sendRawTransaction', [raw]);
    await expect
      .poll(() => desk.rpc('eth_getTransactionReceipt', [paid.transactionHash]))
      .not.toBeNull();
    expect(await desk.clone(user, body)).toMatchObject({ status: 202, body: { clone: { id } } });
    await desk.mine(CONFIRMATIONS);
    expect((await goOn(id)).state).toBe('paid');
  });

  test("a clone waits while another chain than its payment's is configured", async () => {
    const { id } = (await desk.clone(user, await request())).body.clone;
    const chainId = 42_431;
    const elsewhere = {
      chainId,
      onBehalfOf: () => ({
        receipt: () => Promise.resolve(undefined),
        blockNumber: () => Promise.resolve(1_000_000),
      }),
    };
    const chain = { treasury: TREASURY, confirmations: CONFIRMATIONS };
    const payments = new ClonePayments({ store: desk.store, node: elsewhere, chain });
    expect(await payments.check(id)).toBe('waiting');
    await desk.mine(CONFIRMATIONS);
    expect((await goOn(id)).state).toBe('paid');
  });

  test('a clone fails if its parent is removed, and stays removed if it is removed itself', async () => {
    const [orphan, removed] = [await request(), await request()];
    const ids = [];
    for (const body of [orphan, removed]) ids.push((await desk.clone(user, body)).body.clone.id);
    await desk.mine(CONFIRMATIONS);
    await owner(
      `UPDATE agents SET desired = 'deleted' WHERE id IN ('${orphan.parentAgentId}', '${ids[1]}')`,
    );
    for (const id of ids) {
      expect((await goOn(id)).state).toBe('over');
      expect(await operationsOf(id)).toEqual([]);
    }
    expect((await agentOf(ids[0]))?.status_reason).toContain('has been removed');
    expect((await desk.clone(user, removed)).body.code).toBe('PAYMENT_USED');
  });
});

describe('repeated request', () => {
  test('a request with the same Idempotency-Key returns the same clone, even while the chain is unavailable', async () => {
    const body = await request();
    const headers = { 'idempotency-key': randomUUID() };
    const first = await desk.clone(user, body, { headers });
    await owner('DELETE FROM idempotency_keys');
    const second = await desk.cloneBlindly(user, body, { headers });
    expect(second).toMatchObject({ status: 202, body: first.body });
  });

  test('a repeated request without a key gets the id of the clone that its payment was for', async () => {
    const body = await request();
    const { id } = (await desk.clone(user, body)).body.clone;
    expect(await desk.clone(user, body)).toMatchObject({
      status: 409,
      body: { code: 'PAYMENT_USED', cloneId: id },
    });
  });

  test('a repeated request retries a clone that failed to start, paid once, even at the agent limit', async () => {
    const full = await desk.user('solo');
    const body = await request({}, full);
    await desk.parentOf(full);
    const { id } = (await desk.clone(full, body)).body.clone;
    await desk.mine(CONFIRMATIONS);
    await goOn(id);
    await failToComeUp(id);
    const again = await Promise.all([1, 2, 3].map(() => desk.clone(full, body)));
    expect(again.map(({ status }) => status)).toContain(202);
    // A later request finds the retried clone counted again, and the agent limit is checked first.
    const late = { status: 402, code: 'AGENT_LIMIT_REACHED' };
    const answers = again.map(({ body, status }) => ({
      status,
      code: body.code,
      id: body.clone?.id ?? body.cloneId,
    }));
    const one = [
      { status: 202, code: undefined, id },
      { status: 409, code: 'PAYMENT_USED', id },
      { ...late, id: undefined },
    ];
    for (const answer of answers) expect(one).toContainEqual(answer);
    expect(await desk.clone(full, body)).toMatchObject({
      status: late.status,
      body: { code: late.code },
    });
    expect(await agentOf(id)).toMatchObject({ status: 'pending', status_reason: null });
    expect((await goOn(id)).handed).toBeDefined();
    expect(await operationsOf(id)).toHaveLength(2);
    expect(await owner(`SELECT FROM ledger_transfers WHERE cause = 'clone:${id}'`)).toHaveLength(1);
  });
});

describe('memory of a clone', () => {
  test("a clone's memory is copied once the attempt that made its volume has recorded it as complete", async () => {
    const { parentAgentId, ...others } = await request();
    const { id: agentId } = (await desk.clone(user, { parentAgentId, ...others })).body.clone;
    const agent = { agentId, userId: user.id, host: 'local' };
    const { store } = desk;
    const isToBeCopied = (madeBy?: string) =>
      store.isToBeCopied(agent, madeBy === undefined ? undefined : { name: 'volume', madeBy });
    expect([await isToBeCopied(), await isToBeCopied('one')]).toEqual([true, true]);
    await store.recordCopied(agent, 'one');
    expect([await isToBeCopied(), await isToBeCopied('one')]).toEqual([true, false]);
    // A volume of another attempt does not count.
    expect(await isToBeCopied('another')).toBe(true);
    // An agent that is not a clone has its own memory.
    const parent = { ...agent, agentId: parentAgentId };
    expect(await store.isToBeCopied(parent, undefined)).toBe(false);

    expect(await store.originalOf(agent)).toMatchObject({ agentId: parentAgentId });
    await owner(`UPDATE agents SET desired = 'deleted' WHERE id = '${parentAgentId}'`);
    await expect(store.originalOf(agent)).rejects.toBeInstanceOf(ParentGoneError);
  });
});
