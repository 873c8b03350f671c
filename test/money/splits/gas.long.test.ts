// @module-tag attack
import { randomUUID } from 'node:crypto';
import type { Hex } from 'viem';
import { generatePrivateKey, privateKeyToAddress } from 'viem/accounts';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { ChainNode } from '../../../src/money/chain/chain-node.js';
import { feeLimitsOf } from '../../../src/money/chain/fee-limits.js';
import { Signer } from '../../../src/money/payments/signer.js';
import { SigningKeys } from '../../../src/money/payments/signing-keys.js';
import { gasFor } from '../../../src/money/splits/split-gas.js';
import { getSplit } from '../../../src/money/splits/royalty-splits.js';
import { SplitPayments } from '../../../src/money/splits/split-payments.js';
import { openKey } from '../../../src/money/wallets/open-key.js';
import { ChainPayments } from '../../../src/money/payments/chain-payments.js';
import { CHAIN_ID, PATH_USD, testChain, type TestChain } from '../../support/chain/chain.js';
import type { Answer } from '../../support/http.js';
import { keptLog } from '../../support/platform-environment.js';
import { storedGas } from '../gas/support.js';
import { walletSite, type Person, type WalletSite } from '../wallets/support.js';
import { makePayer, newAddress, ONE, type Payer } from './support.js';
import { signIn } from '../../support/account.js';

const INSTANT = '/api/skills/instant-split';
const SETTLEMENT = '/api/skills/booking-settlement';
const UNDERGROUND = '/api/underground/splits';
const LIMIT = 100_000_000;

let chain: TestChain;
let site: WalletSite;
let operator: { readonly address: Hex; readonly privateKey: Hex };
let payer: Payer & Person;
beforeAll(async () => {
  chain = await testChain();
  const privateKey = generatePrivateKey();
  operator = { privateKey, address: privateKeyToAddress(privateKey).toLowerCase() as Hex };
  await chain.pay(operator.address, 1_000n * ONE);
  site = await walletSite({
    CHAIN_RPC_URL: chain.rpcUrl,
    CHAIN_CONFIRMATIONS: '1',
    USDC_ADDRESS: PATH_USD,
    OPERATOR_ADDRESS: operator.address,
  });
});
afterAll(async () => {
  await site?.close();
  await chain?.close();
});
beforeEach(async () => {
  await platform().query('DELETE FROM gas_reservations');
  const made = await makePayer(site.database.db, site.dependencies.secrets);
  payer = { ...made, cookie: await signIn(site.database.db, made) };
});

const platform = () => site.database.db.asPlatform();

/** Returns a split of 0.0001 USDC to a hundred new addresses. */
const spending = (recipients = 100) => ({
  agentId: payer.agentId,
  totalAmount: '0.0001',
  recipients: Array.from({ length: recipients }, () => ({
    address: newAddress(),
    share: 100 / recipients,
  })),
});

const split = (body: object = spending()) => site.web(payer, 'POST', INSTANT, { body });

const idOf = ({ body, status }: Answer): string => {
  expect(status).toBe(200);
  return String(body.splitId);
};

/** Pays a split as the worker and the payments process do. @returns its status. */
async function pay(id: string, rpcUrl = chain.rpcUrl) {
  const { db: database } = site.database;
  const node = new ChainNode({ chainId: CHAIN_ID, url: rpcUrl });
  const steps = new SplitPayments({ database, payments: new ChainPayments(database), node });
  const kept = (address: Hex) => openKey(platform(), site.dependencies.secrets, address);
  const signer = new Signer(
    {
      database,
      gaps: new Set(),
      log: keptLog().log,
      chain: {
        chainId: CHAIN_ID,
        node,
        confirmations: 1,
        feeBumpAfterMs: 3_600_000,
        feeLimits: feeLimitsOf(CHAIN_ID),
      },
      keys: new SigningKeys(operator, kept),
    },
    payer.wallet,
  );
  const causes = await steps.request(id);
  while (await signer.step());
  for (const cause of causes) await steps.settle(id, cause);
  return steps.finish(id);
}

const gas = async () => (await storedGas(site.database.db)).map(({ gas: each }) => each);

test('spends at most the gas of a day for a user who splits 0.0001 USDC to 100 new addresses, 60 times a minute', async () => {
  const answers: Answer[] = [];
  for (let n = 0; n < 60; n++) answers.push(await split());
  const reserved = Number(gasFor(100));
  const admitted = Math.floor(LIMIT / reserved);
  expect(answers.map(({ status }) => status)).toEqual(
    answers.map((_, n) => (n < admitted ? 200 : 429)),
  );
  const facts = { current: admitted * reserved, limit: LIMIT };
  expect(answers.at(-1)?.body).toMatchObject(facts);
  expect(Number(answers.at(-1)?.headers.get('retry-after'))).toBeGreaterThan(0);
  // The other ways to a split have the same budget, and others have theirs.
  const { id: userId, wallet: fromAddress } = payer;
  const settlement = { ...spending(), bookingId: randomUUID() };
  expect((await site.web(payer, 'POST', SETTLEMENT, { body: settlement })).status).toBe(429);
  const asked = { ...spending(), userId, fromAddress, name: 'a song' };
  const refused = await site.backend(undefined, 'POST', UNDERGROUND, { body: asked });
  expect([refused.status, refused.body]).toEqual([429, expect.objectContaining(facts)]);
  const rows = await platform().query('SELECT FROM royalty_splits WHERE user_id = $userId', {
    userId,
  });
  expect(rows).toHaveLength(admitted);
  const other = await makePayer(site.database.db, site.dependencies.secrets);
  const cookie = await signIn(site.database.db, other);
  const body = {
    ...spending(3),
    agentId: other.agentId,
    recipients: [{ address: newAddress(), share: 100 }],
  };
  expect((await site.web({ cookie }, 'POST', INSTANT, { body })).status).toBe(200);
});

test('settles the gas of a split from its receipt', async () => {
  await chain.pay(payer.wallet, ONE);
  const id = idOf(await split());
  expect(await gas()).toEqual([Number(gasFor(100))]);
  expect(await pay(id)).toBe('completed');
  const [{ payouts }] = [await getSplit(site.database.db.asUser(payer.id), id)];
  const receipt = await new ChainNode({ chainId: CHAIN_ID, url: chain.rpcUrl }).receipt(
    payouts[0]?.transaction as Hex,
  );
  expect(await gas()).toEqual([Number(receipt?.gasUsed)]);
  expect((await gas())[0]).toBeGreaterThan(20_000_000);
});

test('releases the gas of a split that the wallet cannot pay, and reserves it again for a retry', async () => {
  const id = idOf(await split());
  expect(await pay(id)).toBe('failed');
  expect(await gas()).toEqual([]);
  for (let n = 0; n < 3; n++) idOf(await split());
  await chain.pay(payer.wallet, ONE);
  const retry = () => site.backend(undefined, 'POST', `${UNDERGROUND}/${id}/retry`);
  expect(await retry()).toMatchObject({ status: 429, body: { limit: LIMIT } });
  await platform().query('DELETE FROM gas_reservations');
  expect((await retry()).status).toBe(202);
  expect(await gas()).toEqual([Number(gasFor(100))]);
  expect(await pay(id)).toBe('completed');
  expect(await gas()).toHaveLength(1);
});

test('retries a payout that was sent even if no gas of the day is left', async () => {
  const id = idOf(await split(spending(2)));
  await platform().query(
    `UPDATE royalty_payouts SET status = 'failed', payment = 'one', transaction = '0x01' WHERE split_id = $id`,
    { id },
  );
  await platform().query(`UPDATE royalty_splits SET status = 'failed' WHERE id = $id`, { id });
  await platform().query('UPDATE gas_reservations SET gas = $limit::bigint', { limit: LIMIT });
  expect(await split(spending(1))).toMatchObject({ status: 429, body: { current: LIMIT } });
  const retried = await site.backend(undefined, 'POST', `${UNDERGROUND}/${id}/retry`);
  expect(retried.status).toBe(202);
});

test('reserves nothing for a repeated request', async () => {
  const headers = { 'idempotency-key': randomUUID() };
  const body = spending();
  const once = () => site.web(payer, 'POST', INSTANT, { body, headers });
  const first = idOf(await once());
  await platform().query('DELETE FROM idempotency_keys');
  expect(idOf(await once())).toBe(first);
  expect(await gas()).toHaveLength(1);
});
