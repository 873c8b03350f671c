import { encodeFunctionData, erc20Abi, type Hex } from 'viem';
import { generatePrivateKey, privateKeyToAddress } from 'viem/accounts';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { ChainAwayError, ChainNode } from '../../../src/money/chain/chain-node.js';
import { feeLimitsOf } from '../../../src/money/chain/fee-limits.js';
import { PaymentStore } from '../../../src/money/payments/payment-store.js';
import { MAX_ON_THE_WAY, Signer } from '../../../src/money/payments/signer.js';
import { Signers } from '../../../src/money/payments/signers.js';
import { signTransaction, type SignedTransaction } from '../../../src/money/payments/sign.js';
import { SigningKeys } from '../../../src/money/payments/signing-keys.js';
import { CHAIN_ID, PATH_USD } from '../../support/chain/chain.js';
import { rpcProxy, type RpcProxy } from '../../support/chain/rpc-proxy.js';
import { newAddress, ONE, paymentLab, transfer, type Payer, type PaymentLab } from './support.js';

let lab: PaymentLab;
let proxy: RpcProxy;
beforeAll(async () => {
  lab = await paymentLab();
  proxy = await rpcProxy(lab.chain.rpcUrl);
});
afterEach(async () => {
  proxy.fate = () => undefined;
  await lab.rpc('evm_setAutomine', true);
});
afterAll(async () => {
  await proxy?.close();
  await lab?.close();
});

/** 10^18 for a unit of gas. */
const HUGE_TIP = { result: '0xde0b6b3a7640000' };

const hold = () => lab.rpc('evm_setAutomine', false);
const mine = () => lab.rpc('anvil_mine', '0x1');
const stateOf = (cause: string) => lab.payments.stateOf(cause);
const isKnown = async (hash: Hex | undefined) =>
  (await lab.rpc('eth_getTransactionByHash', hash)) !== null;

const ofToken = (data: Hex) => ({ to: PATH_USD, data, value: 0n });

/** Returns the call that approves a spender for this many base units. */
const approve = (spender: Hex, amount: bigint) =>
  ofToken(encodeFunctionData({ abi: erc20Abi, functionName: 'approve', args: [spender, amount] }));

/** Returns the call by which an approved spender transfers the amount. */
const take = (from: Hex, to: Hex, amount: bigint) =>
  ofToken(
    encodeFunctionData({ abi: erc20Abi, functionName: 'transferFrom', args: [from, to, amount] }),
  );

/** Lists the transactions signed for a payment, oldest first. */
const signedFor = (cause: string) =>
  lab.database.db.asPlatform().query<{
    hash: Hex;
    raw: Hex;
    nonce: string;
    purpose: string;
    maxFee: string;
    priorityFee: string;
  }>(
    `SELECT t.hash, t.raw, t.nonce, t.purpose, t.max_fee AS "maxFee",
            t.priority_fee AS "priorityFee" FROM transactions t JOIN payments p ON p.id = t.payment_id
      WHERE p.cause = $cause ORDER BY t.signed_at`,
    { cause },
  );

async function payAll({ signer }: Pick<Payer, 'signer'>): Promise<void> {
  for (let n = 0; n < 50; n++) if (!(await signer.step())) return;
  throw new Error('the signer never finishes');
}

/** Steps until all payments are done, and expects each to be paid once. */
async function paysOnce(
  payer: Payer,
  asked: readonly { readonly cause: string; readonly to: Hex }[],
): Promise<void> {
  await payAll(payer);
  for (const { cause, to } of asked) {
    expect(await stateOf(cause)).toMatchObject({ state: 'confirmed' });
    // A resent final transaction is mined a moment later.
    await expect.poll(() => lab.balanceOf(to)).toBe(ONE);
  }
}

test('does not treat a payment as final before its confirmations', async () => {
  const payer = await lab.payer({ confirmations: 3 });
  await hold();
  const { cause } = await payer.ask();
  await payer.signer.step();
  for (let blocks = 1; blocks < 3; blocks++) {
    await mine();
    await payer.signer.step();
    expect(await stateOf(cause)).toMatchObject({ state: 'broadcast', block: undefined });
  }
  await mine();
  await payer.signer.step();
  expect(await stateOf(cause)).toMatchObject({ state: 'confirmed' });
});

test('does not treat a payment as final before its confirmations if the chain mines at once', async () => {
  const payer = await lab.payer({ confirmations: 3 });
  const { cause } = await payer.ask();
  await payer.signer.step();
  expect(await stateOf(cause)).toMatchObject({ state: 'broadcast', block: undefined });
  for (let blocks = 1; blocks < 3; blocks++) await mine();
  await payer.signer.step();
  expect(await stateOf(cause)).toMatchObject({ state: 'confirmed' });
});

test('resends a dropped transaction with the same bytes', async () => {
  const payer = await lab.payer();
  await hold();
  const asked = await payer.ask();
  await payer.signer.step();
  const [signed] = await signedFor(asked.cause);
  await lab.rpc('anvil_dropTransaction', signed?.hash);
  expect(await isKnown(signed?.hash)).toBe(false);
  await payer.signer.step();
  expect(await isKnown(signed?.hash)).toBe(true);
  await mine();
  await paysOnce(payer, [asked]);
  expect(await signedFor(asked.cause)).toEqual([signed]);
});

test.each([
  ['arrives although its response is lost', 'deaf'],
  ['does not arrive', 'lost'],
  ['is answered with an error', -32_000],
] as const)('pays once with a transaction that %s', async (_, fate) => {
  const payer = await lab.payer({ node: new ChainNode({ chainId: CHAIN_ID, url: proxy.url }) });
  const asked = await payer.ask();
  let sent = 0;
  proxy.fate = (method) => (method === 'eth_sendRawTransaction' && ++sent === 1 ? fate : undefined);
  await payer.signer.step().catch((error: unknown) => expect(error).toBeInstanceOf(ChainAwayError));
  expect(sent).toBe(1);
  expect(await stateOf(asked.cause)).toMatchObject({ state: 'broadcast' });
  await paysOnce(payer, [asked]);
  expect(await signedFor(asked.cause)).toHaveLength(1);
});

test('signs nothing while the node is unavailable, and pays once it is back', async () => {
  const node = new ChainNode({ chainId: CHAIN_ID, url: proxy.url });
  const payer = await lab.payer({ node, feeBumpAfterMs: 0 });
  await hold();
  const asked = await payer.ask();
  await payer.signer.step();
  const before = await signedFor(asked.cause);
  await payer.ask();
  proxy.fate = () => 'lost';
  for (let n = 0; n < 3; n++) {
    await expect(payer.signer.step()).rejects.toBeInstanceOf(ChainAwayError);
  }
  expect(await signedFor(asked.cause)).toEqual(before);
  proxy.fate = () => undefined;
  await lab.rpc('evm_setAutomine', true);
  await mine();
  await paysOnce(payer, [asked]);
});

test('raises the fee of a stuck transaction under the same nonce, and counts whichever is mined', async () => {
  const payer = await lab.payer({ feeBumpAfterMs: 0 });
  await hold();
  const asked = await payer.ask();
  for (let n = 0; n < 4; n++) await payer.signer.step();
  const signed = await signedFor(asked.cause);
  expect(signed.length).toBeGreaterThan(2);
  expect(new Set(signed.map(({ nonce }) => nonce)).size).toBe(1);
  // An earlier transaction reaches a miner first.
  for (const { hash } of signed) await lab.rpc('anvil_dropTransaction', hash);
  const [first] = signed;
  await lab.rpc('eth_sendRawTransaction', first?.raw);
  await mine();
  await paysOnce(payer, [asked]);
  expect(await stateOf(asked.cause)).toMatchObject({ hash: first?.hash });
});

test('pays the same with each raised fee: the last transaction is mined, and all are stored', async () => {
  const payer = await lab.payer({ feeBumpAfterMs: 0 });
  await hold();
  const asked = await payer.ask();
  // Each transaction is signed in one step and sent in the next.
  for (let n = 0; n < 5; n++) await payer.signer.step();
  const signed = await signedFor(asked.cause);
  expect(signed.length).toBeGreaterThan(2);
  expect(new Set(signed.map(({ purpose }) => purpose))).toEqual(new Set(['pay']));
  for (const [n, after] of signed.slice(1).entries()) {
    // Nodes replace a transaction only if both fees rise by a tenth.
    for (const fee of ['maxFee', 'priorityFee'] as const) {
      const before = BigInt(signed[n]?.[fee] ?? 0);
      expect(BigInt(after[fee]) * 10n).toBeGreaterThanOrEqual(before * 11n);
    }
  }
  await mine();
  await paysOnce(payer, [asked]);
  expect(await stateOf(asked.cause)).toMatchObject({ hash: signed.at(-1)?.hash });
  expect(await signedFor(asked.cause)).toEqual(signed);
});

test('resends a transaction that a reorganization removed', async () => {
  const payer = await lab.payer({ confirmations: 2 });
  await hold();
  const asked = await payer.ask();
  await payer.signer.step();
  await mine();
  await payer.signer.step();
  const [signed] = await signedFor(asked.cause);
  await lab.rpc('anvil_reorg', 1, []);
  await lab.rpc('anvil_dropTransaction', signed?.hash);
  expect(await lab.balanceOf(asked.to)).toBe(0n);
  await payer.signer.step();
  expect(await stateOf(asked.cause)).toMatchObject({ state: 'broadcast' });
  expect(await isKnown(signed?.hash)).toBe(true);
  await mine();
  await mine();
  await paysOnce(payer, [asked]);
  expect(await signedFor(asked.cause)).toEqual([signed]);
});

test('resends final transactions to a node that was restored from an older state', async () => {
  const payer = await lab.payer();
  const older = await lab.rpc('evm_snapshot');
  const asked = [await payer.ask(), await payer.ask()];
  await paysOnce(payer, asked);
  await lab.rpc('evm_revert', older);
  expect(await lab.balanceOf(asked[0]?.to ?? '0x')).toBe(0n);
  const { chain, ...parts } = payer.parts;
  await new Signers({ ...parts, chains: [chain] }).restore();
  await paysOnce(payer, asked);
});

test('resends final transactions when the next payment finds missing nonces', async () => {
  const payer = await lab.payer();
  const older = await lab.rpc('evm_snapshot');
  const asked = [await payer.ask()];
  await paysOnce(payer, asked);
  await lab.rpc('evm_revert', older);
  await paysOnce(payer, [...asked, await payer.ask()]);
  expect(await lab.notifiedOf(payer.address)).toEqual([
    {
      event: 'nonces_missing',
      chainId: CHAIN_ID,
      signer: payer.address,
      from: '0',
      until: '1',
    },
  ]);
});

test('notifies operators once of a nonce gap, however long it remains, and again of the next gap', async () => {
  const payer = await lab.payer();
  const { chain, keys, ...parts } = payer.parts;
  const signers = new Signers({ ...parts, keys, chains: [chain] });
  let older = await lab.rpc('evm_snapshot');
  const asked = [await payer.ask(), await payer.ask()];
  await paysOnce(payer, asked);
  for (let gaps = 1; gaps <= 2; gaps++) {
    await lab.rpc('evm_revert', older);
    older = await lab.rpc('evm_snapshot'); // a snapshot can be reverted to only once
    await hold();
    for (let n = 0; n < 3; n++) await signers.restore();
    expect(await lab.notifiedOf(payer.address)).toHaveLength(gaps);
    await lab.rpc('evm_setAutomine', true);
    await mine();
    await signers.restore();
    await paysOnce(payer, asked);
  }
});

/** Sends a transaction with the payer's key from outside the platform. */
async function foreign({ address, privateKey }: Payer, nonce: bigint): Promise<void> {
  const price = { maxFee: 400_000_000_000n, priorityFee: 40_000_000_000n };
  const call = { ...transfer(address, 1n) };
  const { raw } = await signTransaction(
    { signer: privateKey, feePayer: undefined },
    {
      chainId: CHAIN_ID,
      nonce,
      calls: [call],
      gas: 1_000_000n,
      ...price,
    },
    feeLimitsOf(CHAIN_ID),
  );
  await lab.rpc('eth_sendRawTransaction', raw);
}

test('fills a nonce gap left by a foreign transaction with an empty transaction', async () => {
  const payer = await lab.payer();
  const older = await lab.rpc('evm_snapshot');
  await foreign(payer, 0n);
  const asked = [await payer.ask()];
  await paysOnce(payer, asked);
  await lab.rpc('evm_revert', older);
  await paysOnce(payer, [...asked, await payer.ask()]);
});

test('signs a payment again with a new nonce after a foreign transaction finally used the nonce', async () => {
  const payer = await lab.payer({ confirmations: 3 });
  await hold();
  const asked = await payer.ask();
  await payer.signer.step();
  await foreign(payer, 0n);
  await mine();
  for (let n = 0; n < 3; n++) await payer.signer.step();
  // The foreign transaction may still be removed by a reorganization.
  expect(await signedFor(asked.cause)).toHaveLength(1);
  await mine();
  await mine();
  for (let n = 0; n < 3; n++) await payer.signer.step();
  const signed = await signedFor(asked.cause);
  expect(signed.map(({ nonce }) => nonce)).toEqual(['0', '1']);
  for (let n = 0; n < 3; n++) await mine();
  await paysOnce(payer, [asked]);
});

test('abandons no nonce while the chain has fewer blocks than confirmations', async () => {
  const payer = await lab.payer({ confirmations: 1_000_000 });
  await hold();
  const asked = await payer.ask();
  await payer.signer.step();
  await foreign(payer, 0n);
  await mine();
  for (let n = 0; n < 2; n++) expect(await payer.signer.step()).toBe(true);
  expect(await signedFor(asked.cause)).toHaveLength(1);
});

test('keeps the limit of payments in flight, including transactions that fill a gap', async () => {
  const payer = await lab.payer();
  const older = await lab.rpc('evm_snapshot');
  for (let nonce = 0n; nonce < 3n; nonce++) await foreign(payer, nonce);
  await hold();
  const asked: { cause: string; to: Hex }[] = [];
  for (let n = 0; n < MAX_ON_THE_WAY + 2; n++) asked.push(await payer.ask());
  await payer.signer.step();
  await lab.rpc('evm_revert', older);
  for (let n = 0; n < 3; n++) await payer.signer.step();
  const states = await lab.payments.statesOf(asked.map(({ cause }) => cause));
  const queued = [...states.values()].filter(({ state }) => state === 'queued');
  expect(queued).toHaveLength(2);
  await lab.rpc('evm_setAutomine', true);
  await mine();
  await paysOnce(payer, asked);
});

test('never reuses a signed nonce for another payment', async () => {
  const payer = await lab.payer();
  const store = new PaymentStore(lab.database.db, { chainId: CHAIN_ID, address: payer.address });
  const causes = [(await payer.ask()).cause, (await payer.ask()).cause];
  const [first, second] = await store.queued(2, []);
  const given = { chainId: CHAIN_ID, nonce: 7n, calls: [], gas: 1n, maxFee: 1n, priorityFee: 0n };
  const transaction = (): SignedTransaction => {
    const hash = newAddress();
    return { hash, raw: hash };
  };
  const stored = transaction();
  expect(await store.storeFirst(first?.id ?? '', given, stored)).toBe(true);
  expect(await store.storeFirst(second?.id ?? '', given, transaction())).toBe(false);
  expect(await store.storeFirst(first?.id ?? '', { ...given, nonce: 8n }, transaction())).toBe(
    false,
  );
  const [[, [replaced] = []] = []] = await store.unsettled();
  if (replaced) await store.requeueUnknown(replaced, false);
  expect(await store.storeFirst(second?.id ?? '', given, transaction())).toBe(false);
  const states = await lab.payments.statesOf(causes);
  expect([...states.values()].map(({ state }) => state)).toEqual(['queued', 'queued']);
});

test('signs no second transaction while the node does not yet show the receipt of the nonce', async () => {
  const node = new ChainNode({ chainId: CHAIN_ID, url: proxy.url });
  const payer = await lab.payer({ node });
  const asked = await payer.ask();
  // A node that does not index its transactions yet.
  let hides = true;
  const receiptOf = node.receipt.bind(node);
  node.receipt = (hash) => (hides ? Promise.resolve(undefined) : receiptOf(hash));
  for (let n = 0; n < 4; n++) await payer.signer.step();
  expect(await signedFor(asked.cause)).toHaveLength(1);
  hides = false;
  await paysOnce(payer, [asked]);
});

test('marks a payment that is reverted on chain as failed and does not retry it', async () => {
  const [payer, drainer] = [await lab.payer(), lab.chain.account(2)];
  await payer.ask({ calls: [approve(drainer.address, 100n * ONE)] });
  await payAll(payer);
  await hold();
  const { cause, to } = await payer.ask();
  await payer.signer.step();
  const [signed] = await signedFor(cause);
  await lab.rpc('anvil_dropTransaction', signed?.hash);
  await lab.rpc('evm_setAutomine', true);
  // The amount is spent before the payment is mined; the rest covers only its fee.
  const rest = (await lab.balanceOf(payer.address)) - ONE / 2n;
  const gone = take(payer.address, drainer.address, rest);
  await lab.chain.send(drainer, [gone]);
  const before = await lab.balanceOf(payer.address);
  await payAll(payer);
  expect(await stateOf(cause)).toMatchObject({ state: 'failed', failure: 'reverted' });
  await payAll(payer);
  expect(await signedFor(cause)).toHaveLength(1);
  expect(await lab.balanceOf(to)).toBe(0n);
  // Its fee is booked as for a successful payment.
  const [{ hash = '' } = {}] = await signedFor(cause);
  const booked = await lab.feeOf(hash);
  expect(booked).toBe(before - (await lab.balanceOf(payer.address)));
  const failed = { event: 'payment_failed', failure: 'reverted', paymentId: expect.any(String) };
  expect(await lab.notifiedOf(cause)).toEqual([{ ...failed, cause }]);
});

test('refuses a payment that exceeds its gas limit, at no cost', async () => {
  const payer = await lab.payer();
  // Enough gas to start the call, not to finish it.
  const { cause, to } = await payer.ask({ gas: 300_000n });
  await payAll(payer);
  expect(await stateOf(cause)).toMatchObject({ failure: 'refused', hash: undefined });
  expect(await lab.balanceOf(to)).toBe(0n);
  expect(await lab.balanceOf(payer.address)).toBe(100n * ONE);
});

test('abandons the nonce of a transaction that every node rejects, without blocking other payments', async () => {
  const node = new ChainNode({ chainId: CHAIN_ID, url: proxy.url });
  const payer = await lab.payer({ node, feeBumpAfterMs: 0 });
  const bad = await payer.ask();
  const isBad = (body: string) => body.includes(bad.to.slice(2));
  proxy.fate = (method, body) =>
    method === 'eth_sendRawTransaction' && isBad(body) ? -32_003 : undefined;
  await payer.signer.step();
  const good = await payer.ask();
  await payAll(payer);
  expect(await stateOf(bad.cause)).toMatchObject({ state: 'failed', failure: 'cancelled' });
  expect(await lab.balanceOf(bad.to)).toBe(0n);
  await paysOnce(payer, [good]);
});

test('skips a payment that would be reverted, and fails it once the earlier payments are final', async () => {
  const payer = await lab.payer();
  await hold();
  const before = await payer.ask();
  await payer.signer.step();
  const bad = await payer.ask({ calls: [transfer(before.to, 1_000n * ONE)] });
  const behind = await payer.ask();
  for (let n = 0; n < 2; n++) await payer.signer.step();
  expect(await stateOf(bad.cause)).toMatchObject({ state: 'queued' });
  expect(await stateOf(behind.cause)).toMatchObject({ state: 'broadcast' });
  await mine();
  // At least one payment stays in flight.
  const asked = [before, behind];
  for (let n = 0; n < 2; n++) {
    asked.push(await payer.ask());
    await payer.signer.step();
  }
  expect(await stateOf(bad.cause)).toMatchObject({ state: 'failed', failure: 'refused' });
  const failed = { event: 'payment_failed', failure: 'refused', paymentId: expect.any(String) };
  expect(await lab.notifiedOf(bad.cause)).toEqual([{ ...failed, cause: bad.cause }]);
  expect(await stateOf(asked[2]?.cause ?? '')).toMatchObject({ state: 'broadcast' });
  await lab.rpc('evm_setAutomine', true);
  await mine();
  await paysOnce(payer, asked);
});

test('makes a payment that depends on one in flight after it', async () => {
  const payer = await lab.payer();
  await hold();
  const to = newAddress();
  await payer.ask({ calls: [approve(payer.address, ONE)] });
  await payer.signer.step();
  const { cause } = await payer.ask({ calls: [take(payer.address, to, ONE)] });
  for (let n = 0; n < 2; n++) await payer.signer.step();
  expect(await stateOf(cause)).toMatchObject({ state: 'queued' });
  await lab.rpc('evm_setAutomine', true);
  await mine();
  await paysOnce(payer, [{ cause, to }]);
});

test(
  'signs no fee above the maximum that a node answers, and pays once the node is honest',
  { tags: 'attack' },
  async () => {
    const payer = await lab.payer({ node: new ChainNode({ chainId: CHAIN_ID, url: proxy.url }) });
    const asked = await payer.ask();
    proxy.fate = (method) => (method === 'eth_maxPriorityFeePerGas' ? HUGE_TIP : undefined);
    for (let n = 0; n < 3; n++) await payer.signer.step();
    expect(await signedFor(asked.cause)).toEqual([]);
    expect(await stateOf(asked.cause)).toMatchObject({ state: 'queued' });
    expect(await lab.notifiedOf('fees_too_high')).toMatchObject([
      { event: 'fees_too_high', chainId: CHAIN_ID, limit: 'unit' },
    ]);
    proxy.fate = () => undefined;
    await paysOnce(payer, [asked]);
  },
);

test(
  'keeps a transaction whose raised fee would exceed the maximum, and pays once with it',
  { tags: 'attack' },
  async () => {
    const node = new ChainNode({ chainId: CHAIN_ID, url: proxy.url });
    const payer = await lab.payer({ node, feeBumpAfterMs: 0 });
    await hold();
    const asked = await payer.ask();
    await payer.signer.step();
    proxy.fate = (method) => (method === 'eth_maxPriorityFeePerGas' ? HUGE_TIP : undefined);
    for (let n = 0; n < 3; n++) await payer.signer.step();
    expect(await signedFor(asked.cause)).toHaveLength(1);
    await mine();
    await paysOnce(payer, [asked]);
  },
);

test('fills no missing nonce at a fee above the maximum', { tags: 'attack' }, async () => {
  const payer = await lab.payer({ node: new ChainNode({ chainId: CHAIN_ID, url: proxy.url }) });
  const older = await lab.rpc('evm_snapshot');
  await foreign(payer, 0n);
  const asked = await payer.ask();
  await paysOnce(payer, [asked]);
  await lab.rpc('evm_revert', older);
  proxy.fate = (method) => (method === 'eth_maxPriorityFeePerGas' ? HUGE_TIP : undefined);
  const next = await payer.ask();
  await payer.signer.step();
  expect(await stateOf(next.cause)).toMatchObject({ state: 'queued' });
  const signed = await lab.database.db
    .asPlatform()
    .query('SELECT 1 FROM transactions WHERE signer = $address', { address: payer.address });
  expect(signed).toHaveLength(1);
  proxy.fate = () => undefined;
  await paysOnce(payer, [asked, next]);
});

test('makes cheaper payments while one with expensive gas waits', { tags: 'attack' }, async () => {
  const payer = await lab.payer();
  const first = await payer.ask();
  await paysOnce(payer, [first]);
  const [signed] = await signedFor(first.cause);
  const feeLimits = { unit: 10n ** 18n, transaction: BigInt(signed?.maxFee ?? 0) * 5_000_000n };
  const chain = { ...payer.parts.chain, feeLimits };
  const signer = new Signer({ ...payer.parts, chain }, payer.address);
  const expensive = await payer.ask({ gas: 20_000_000n });
  const cheap = await payer.ask();
  for (let n = 0; n < 3; n++) await signer.step();
  expect(await stateOf(cheap.cause)).toMatchObject({ state: 'confirmed' });
  expect(await signedFor(expensive.cause)).toEqual([]);
  await paysOnce(payer, [expensive]);
});

test('waits without raising fees when the signer cannot pay them, and notifies operators once', async () => {
  const payer = await lab.payer({ feeBumpAfterMs: 0 });
  const node = new ChainNode({ chainId: CHAIN_ID, url: proxy.url });
  const chain = { ...payer.parts.chain, node };
  const signer = new Signer({ ...payer.parts, chain }, payer.address);
  const asked = [await payer.ask(), await payer.ask()];
  proxy.fate = (method) => (method === 'eth_sendRawTransaction' ? -32_003 : undefined);
  node.tokenBalance = () => Promise.resolve(0n);
  for (let n = 0; n < 12; n++) await signer.step();
  // A signer that resumes the work does not notify again.
  const another = new Signer({ ...payer.parts, chain }, payer.address);
  for (let n = 0; n < 3; n++) await another.step();
  for (const { cause } of asked) expect(await signedFor(cause)).toHaveLength(1);
  expect(await lab.notifiedOf(payer.address)).toEqual([
    { event: 'fees_unpayable', chainId: CHAIN_ID, payer: payer.address },
  ]);
  await paysOnce(payer, asked);
});

test('waits when the operator cannot pay the fees of a wallet', async () => {
  const payer = await lab.payer({ feeBumpAfterMs: 0 });
  const [operator, address] = [generatePrivateKey(), payer.address];
  const poor = privateKeyToAddress(operator).toLowerCase() as Hex;
  const keys = new SigningKeys({ address: poor, privateKey: operator }, () =>
    Promise.resolve(payer.privateKey),
  );
  const signer = new Signer({ ...payer.parts, keys }, address);
  const asked = await payer.ask();
  for (let n = 0; n < 12; n++) await signer.step();
  expect(await signedFor(asked.cause)).toHaveLength(1);
  expect(await lab.notifiedOf(poor)).toEqual([
    { event: 'fees_unpayable', chainId: CHAIN_ID, payer: poor },
  ]);
  await lab.chain.pay(poor, 10n * ONE);
  await paysOnce({ ...payer, signer }, [asked]);
});

test('fails a payment after repeated unsuccessful attempts to sign it', async () => {
  const payer = await lab.payer();
  const { cause } = await payer.ask();
  const keys = {
    open: () => Promise.reject(new Error('the seal is broken')),
    feePayerOf: () => payer.address,
    operator: undefined,
  };
  const signer = new Signer({ ...payer.parts, keys, retryMs: 0 }, payer.address);
  for (let n = 0; n < 24; n++) await signer.step();
  expect(await stateOf(cause)).toMatchObject({ state: 'failed', failure: 'unsignable' });
  await payAll(payer);
  expect(await lab.notifiedOf(cause)).toMatchObject([{ event: 'payment_failed', cause }]);
});

test('abandons no payment while a node refuses to simulate for minutes', async () => {
  const payer = await lab.payer({ node: new ChainNode({ chainId: CHAIN_ID, url: proxy.url }) });
  const asked = await payer.ask();
  const signer = new Signer({ ...payer.parts, retryMs: 0 }, payer.address);
  proxy.fate = (method) => (method === 'eth_simulateV1' ? -32_005 : undefined);
  for (let n = 0; n < 30; n++) await expect(signer.step()).rejects.toThrow(ChainAwayError);
  expect(await stateOf(asked.cause)).toMatchObject({ state: 'queued' });
  proxy.fate = () => undefined;
  await paysOnce({ ...payer, signer }, [asked]);
});

test.each([-32_000, -32_005, -32_603])(
  'abandons no payment that is the only one to fail to simulate, with error %i for minutes',
  async (code) => {
    const payer = await lab.payer({ node: new ChainNode({ chainId: CHAIN_ID, url: proxy.url }) });
    const asked = await payer.ask();
    const signer = new Signer({ ...payer.parts, retryMs: 0 }, payer.address);
    proxy.fate = (method, body) =>
      method === 'eth_simulateV1' && body.includes(asked.to.slice(2)) ? code : undefined;
    for (let n = 0; n < 30; n++) await signer.step();
    expect(await stateOf(asked.cause)).toMatchObject({ state: 'queued' });
    proxy.fate = () => undefined;
    await paysOnce({ ...payer, signer }, [asked]);
  },
);

test.each([-38_014, -32_602])(
  'fails a payment that a node repeatedly rejects as an invalid transaction with error %i',
  async (code) => {
    const payer = await lab.payer({ node: new ChainNode({ chainId: CHAIN_ID, url: proxy.url }) });
    const { cause, to } = await payer.ask();
    const signer = new Signer({ ...payer.parts, retryMs: 0 }, payer.address);
    proxy.fate = (method, body) =>
      method === 'eth_simulateV1' && body.includes(to.slice(2)) ? code : undefined;
    for (let n = 0; n < 24; n++) await signer.step();
    expect(await stateOf(cause)).toMatchObject({ state: 'failed', failure: 'unsignable' });
  },
);

test('signs the payments behind one that cannot be signed in the same step', async () => {
  const payer = await lab.payer({ node: new ChainNode({ chainId: CHAIN_ID, url: proxy.url }) });
  const [first, second] = [await payer.ask(), await payer.ask()];
  proxy.fate = (method, body) =>
    method === 'eth_simulateV1' && body.includes(first.to.slice(2)) ? -32_000 : undefined;
  await payer.signer.step();
  expect(await stateOf(first.cause)).toMatchObject({ state: 'queued' });
  // The node decides when the block is available.
  expect((await stateOf(second.cause))?.state).toMatch(/^(broadcast|confirmed)$/);
});

test('pays once if two processes pay at the same time', async () => {
  const payer = await lab.payer();
  const other = new Signer(payer.parts, payer.address);
  const asked = await Promise.all(Array.from({ length: 8 }, () => payer.ask()));
  for (let n = 0; n < 4; n++) await Promise.all([payer.signer.step(), other.step()]);
  await paysOnce(payer, asked);
});
