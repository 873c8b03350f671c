import { randomUUID } from 'node:crypto';
import { createPublicClient, http, parseTransaction, type Hex } from 'viem';
import { generatePrivateKey, privateKeyToAddress } from 'viem/accounts';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { anvilAccount, anvilKey } from '../../../dev/chain/accounts.js';
import { ChainNode } from '../../../src/money/chain/chain-node.js';
import { feeLimitsOf } from '../../../src/money/chain/fee-limits.js';
import { ChainPayments, type PaymentRequest } from '../../../src/money/payments/chain-payments.js';
import { Signer, type SignerParts } from '../../../src/money/payments/signer.js';
import { SigningKeys } from '../../../src/money/payments/signing-keys.js';
import { deploymentOf, ordinaryChain, type TestChain } from '../../support/chain/chain.js';
import { keptLog } from '../../support/platform-environment.js';
import { testDatabase, type TestDatabase } from '../../support/postgres.js';
import { newAddress } from './support.js';

/* An ordinary chain for royalties: the signer pays fees in the chain's own coins. */

const CHAIN_ID = 84_532;
const payer = anvilKey(3);

let database: TestDatabase;
let chain: Pick<TestChain, 'rpcUrl' | 'close'>;
let payments: ChainPayments;
let client: ReturnType<typeof createPublicClient>;
beforeAll(async () => {
  [database, chain] = await Promise.all([testDatabase(), ordinaryChain(CHAIN_ID)]);
  payments = new ChainPayments(database.db);
  client = createPublicClient({ transport: http(chain.rpcUrl) });
});
afterEach(() => rpc('evm_setAutomine', true));
afterAll(async () => {
  await chain?.close();
  await database?.close();
});

const rpc = (method: string, ...params: unknown[]) => client.request({ method, params } as never);
const stateOf = (cause: string) => payments.stateOf(cause);

/** Returns the signer of an address. It also has the operator's key, which must not pay here. */
function signerOf({ address, privateKey }: typeof payer, feeBumpAfterMs = 3_600_000): Signer {
  const node = new ChainNode({ chainId: CHAIN_ID, url: chain.rpcUrl });
  const parts: SignerParts = {
    database: database.db,
    gaps: new Set(),
    log: keptLog().log,
    chain: {
      chainId: CHAIN_ID,
      node,
      confirmations: 1,
      feeBumpAfterMs,
      feeLimits: feeLimitsOf(CHAIN_ID),
    },
    keys: new SigningKeys(anvilKey(4), () => Promise.resolve(privateKey)),
  };
  return new Signer(parts, address);
}

async function ask(call: PaymentRequest['calls'][number], signer: Hex = payer.address) {
  const cause = `test:${randomUUID()}`;
  await database.db
    .asPlatform()
    .transaction((db) => payments.request(db, { cause, chainId: CHAIN_ID, signer, calls: [call] }));
  return cause;
}

async function payAll(signer: Signer): Promise<void> {
  for (let n = 0; n < 50; n++) if (!(await signer.step())) return;
  throw new Error('the signer never finishes');
}

const signedFor = (cause: string) =>
  database.db.asPlatform().query<{ hash: Hex; raw: Hex; fee: string | null }>(
    `SELECT t.hash, t.raw, t.fee FROM transactions t JOIN payments p ON p.id = t.payment_id
      WHERE p.cause = $cause ORDER BY t.signed_at`,
    { cause },
  );

test('makes calls and sends values by EIP-1559 transactions', async () => {
  const { deployed, deployer, data } = deploymentOf(anvilAccount(5));
  const to = newAddress();
  const called = await ask({ to: deployer, data, value: 0n });
  const sent = await ask({ to, data: '0x', value: 5n });
  await payAll(signerOf(payer));
  expect(await stateOf(called)).toMatchObject({ state: 'confirmed' });
  expect(await stateOf(sent)).toMatchObject({ state: 'confirmed' });
  expect(await client.getBalance({ address: to })).toBe(5n);
  expect(await client.getCode({ address: deployed })).toMatch(/^0x[\da-f]+$/);
  const [signed] = await signedFor(sent);
  expect(parseTransaction(signed?.raw ?? '0x')).toMatchObject({
    type: 'eip1559',
    chainId: CHAIN_ID,
    to,
    value: 5n,
  });
  // No fee in pathUSD, so the ledger has none.
  expect(signed?.fee).toBeNull();
});

test('raises the fee of a stuck transaction on an ordinary chain, and counts whichever is mined', async () => {
  await rpc('evm_setAutomine', false);
  const to = newAddress();
  const cause = await ask({ to, data: '0x', value: 7n });
  const signer = signerOf(payer, 0);
  await signer.step();
  await signer.step();
  await signer.step();
  const signed = await signedFor(cause);
  expect(signed.length).toBeGreaterThan(1);
  const [first, second] = signed.map(({ raw }) => parseTransaction(raw));
  expect(second?.nonce).toBe(first?.nonce);
  expect(second?.maxFeePerGas).toBeGreaterThan(first?.maxFeePerGas ?? 0n);
  await rpc('anvil_mine', '0x1');
  await payAll(signer);
  expect(await stateOf(cause)).toMatchObject({ state: 'confirmed' });
  expect(await client.getBalance({ address: to })).toBe(7n);
});

test('waits if the signer has no coins for the fee, and notifies operators', async () => {
  const privateKey = generatePrivateKey();
  const poor = { address: privateKeyToAddress(privateKey).toLowerCase() as Hex, privateKey };
  const to = newAddress();
  const cause = await ask({ to, data: '0x', value: 0n }, poor.address);
  const signer = signerOf(poor, 0);
  for (let n = 0; n < 4; n++) await signer.step();
  expect(await stateOf(cause)).toMatchObject({ state: 'broadcast' });
  expect(await signedFor(cause)).toHaveLength(1);
  const reported = await database.db
    .asPlatform()
    .query(`SELECT event FROM pending_notifications WHERE event->>'event' = 'fees_unpayable'`);
  expect(reported).toEqual([
    { event: { event: 'fees_unpayable', chainId: CHAIN_ID, payer: poor.address } },
  ]);
  await rpc('anvil_setBalance', poor.address, '0xde0b6b3a7640000');
  await payAll(signer);
  expect(await stateOf(cause)).toMatchObject({ state: 'confirmed' });
});
