// @module-tag attack
import { randomUUID } from 'node:crypto';
import { createTestClient, http, type Hex } from 'viem';
import { generatePrivateKey, type PrivateKeyAccount } from 'viem/accounts';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { sealKey } from '../../../src/money/wallets/wallet-keys.js';
import { PLATFORM } from '../../../src/money/chain/chain-node.js';
import { PATH_USD } from '../../support/chain/chain.js';
import { ONE, sessionLab, type SessionLab, type Wallet } from './support.js';

const SESSIONS = '/api/wallet/sessions';

/** Accepts every signature if called with more than 2,000,000 gas; an opening provides less. */
const GREEDY = '0x621e84805a11600c575f5ffd5b631626ba7e60e01b5f5260205ff3';

/** Accepts every signature at gas price 0, as in a simulation, and reverts on chain. */
const FALSE_FRIEND = '0x3a156008575f5ffd5b631626ba7e60e01b5f5260205ff3';

let lab: SessionLab;
let stop = () => Promise.resolve();
beforeAll(async () => {
  lab = await sessionLab();
});
afterEach(async () => {
  await stop();
  stop = () => Promise.resolve();
});
afterAll(() => lab?.close());

const run = () => {
  stop = lab.run();
};
const setCode = (address: Hex, bytecode: Hex) =>
  createTestClient({ mode: 'anvil', transport: http(lab.chain.rpcUrl) }).setCode({
    address,
    bytecode,
  });

/** Delegates the wallet of a key to a contract (EIP-7702). */
const delegate = (wallet: Wallet, to: Hex) => setCode(wallet.lower, `0xef0100${to.slice(2)}`);

const post = (body: unknown, user?: Awaited<ReturnType<typeof lab.site.person>>) =>
  lab.site.web(user, 'POST', SESSIONS, { body });

/** Requests a session for a wallet with a signature of `signer`. */
async function open(
  { address }: Wallet,
  signer: PrivateKeyAccount,
  by?: Parameters<typeof post>[1],
) {
  const authorization = await lab.sign(signer, 2n * ONE, { payer: address });
  return post({ address, deposit: '2', authorization }, by);
}

const failuresOf = ({ lower }: Wallet) =>
  lab.site.database.db
    .asPlatform()
    .query<{ failure: string | null }>(
      'SELECT failure FROM payment_sessions WHERE address = $lower ORDER BY created_at',
      { lower },
    );

const refusal = {
  status: 401,
  body: {
    error: expect.stringContaining('The wallet has code'),
    code: 'AUTHORIZATION_REQUIRED',
    typedData: { primaryType: 'Hold' },
  },
};

test('refuses the key of a wallet that has code, opens with a signature its code accepts, and refunds the rest on closing', async () => {
  run();
  const [wallet, owner] = [await lab.wallet(2n * ONE), await lab.wallet(0n)];
  await delegate(wallet, await lab.chain.deployWallet(owner));
  expect(await open(wallet, wallet)).toMatchObject(refusal);
  expect(await failuresOf(wallet)).toEqual([]);
  const made = await open(wallet, owner);
  expect(made.status).toBe(201);
  const node = lab.site.dependencies.chain.onBehalfOf(PLATFORM);
  const balance = () => node.tokenBalance(PATH_USD, wallet.lower);
  const before = await balance();
  const { id } = made.body.session;
  const closed = await lab.site.web(undefined, 'DELETE', `${SESSIONS}?sessionId=${id}`);
  expect(closed).toMatchObject({ status: 200, body: { refunded: '2.000000' } });
  expect((await balance()) - before).toBe(2n * ONE);
});

test('does not sign with the stored key of a wallet that has code, and opens with a signature its code accepts', async () => {
  run();
  const [ada, privateKey] = [await lab.site.person(), generatePrivateKey()];
  const { database, dependencies } = lab.site;
  const sealed = sealKey(dependencies.secrets, ada.id, privateKey);
  await database.db
    .asUser(ada.id)
    .transaction((db) =>
      db.Wallet.create({ id: randomUUID(), userId: ada.id, kind: 'imported', ...sealed }),
    );
  const [wallet, owner] = [await lab.wallet(2n * ONE, privateKey), await lab.wallet(0n)];
  await delegate(wallet, await lab.chain.deployWallet(owner));
  expect(await post({ address: wallet.address, deposit: '2' }, ada)).toMatchObject(refusal);
  expect(await open(wallet, wallet, ada)).toMatchObject(refusal);
  expect(await failuresOf(wallet)).toEqual([]);
  expect((await open(wallet, owner, ada)).status).toBe(201);
});

test('refuses wallet code that accepts a signature only with more gas than an opening has', async () => {
  const wallet = await lab.wallet(2n * ONE);
  await setCode(wallet.lower, GREEDY);
  expect(await open(wallet, wallet)).toMatchObject(refusal);
});

test('limits wallet code that reverts on chain to the fee of one opening an hour', async () => {
  run();
  const wallet = await lab.wallet(2n * ONE);
  await setCode(wallet.lower, FALSE_FRIEND);
  expect(await open(wallet, wallet)).toMatchObject({ status: 503 });
  await expect.poll(() => failuresOf(wallet)).toEqual([{ failure: 'reverted' }]);
  const again = await open(wallet, wallet);
  expect([again.status, again.headers.get('retry-after')]).toEqual([429, '3600']);
  expect(await failuresOf(wallet)).toHaveLength(1);
  // Other wallets can still open sessions; those with code only until 20 such failures.
  const [plain, other, owner] = [
    await lab.wallet(2n * ONE),
    await lab.wallet(2n * ONE),
    await lab.wallet(0n),
  ];
  await delegate(other, await lab.chain.deployWallet(owner));
  const { db } = lab.site.database;
  const made = await db.asPlatform().query(
    `INSERT INTO payment_sessions (id, token_hash, token_end, sealed_token, address, chain_id, escrow,
         hold_id, nonce, authorization_deadline, deposit, state, failure)
       SELECT gen_random_uuid()::text, gen_random_uuid()::text, token_end, sealed_token,
              '0x' || lpad(to_hex(n), 40, '0'), chain_id, escrow, hold_id, nonce,
              authorization_deadline, deposit, state, failure
         FROM payment_sessions, generate_series(1, 19) n WHERE address = $lower RETURNING 1`,
    { lower: wallet.lower },
  );
  expect(made).toHaveLength(19);
  expect((await open(other, owner)).status).toBe(429);
  expect((await open(plain, plain)).status).toBe(201);
  await db
    .asPlatform()
    .query(
      `UPDATE payment_sessions SET failure = 'refused' WHERE failure = 'reverted' AND address <> $lower`,
      { lower: wallet.lower },
    );
  expect((await open(other, owner)).status).toBe(201);
});
