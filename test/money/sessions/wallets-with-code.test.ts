// @module-tag attack
import { randomUUID } from 'node:crypto';
import { createTestClient, http, type Hex } from 'viem';
import { generatePrivateKey, type PrivateKeyAccount } from 'viem/accounts';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { sealKey } from '../../../src/money/wallets/wallet-keys.js';
import { PATH_USD } from '../../support/chain/chain.js';
import { ONE, sessionLab, type SessionLab, type Wallet } from './support.js';

const SESSIONS = '/api/wallet/sessions';

/** Takes every signature when it has more than 2,000,000 gas, which an opening has not. */
const GREEDY = '0x621e84805a11600c575f5ffd5b631626ba7e60e01b5f5260205ff3';

/** Takes every signature while nobody pays for gas, as where it is asked, and reverts on chain. */
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

/** Has a wallet of a key be what a contract says (EIP-7702). */
const delegate = (wallet: Wallet, to: Hex) => setCode(wallet.lower, `0xef0100${to.slice(2)}`);

const post = (body: unknown, user?: Awaited<ReturnType<typeof lab.site.person>>) =>
  lab.site.web(user, 'POST', SESSIONS, { body });

/** Asks for a session of a wallet with what somebody has signed. */
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
    ...{ code: 'AUTHORIZATION_REQUIRED', typedData: { primaryType: 'Hold' } },
  },
};

test('a key whose wallet has code signs nothing for it, what the code takes opens a session, and closing it gives the rest back', async () => {
  run();
  const [wallet, owner] = [await lab.wallet(2n * ONE), await lab.wallet(0n)];
  await delegate(wallet, await lab.chain.deployWallet(owner));
  expect(await open(wallet, wallet)).toMatchObject(refusal);
  expect(await failuresOf(wallet)).toEqual([]);
  const made = await open(wallet, owner);
  expect(made.status).toBe(201);
  const balance = () => lab.site.dependencies.chain.tokenBalance(PATH_USD, wallet.lower);
  const before = await balance();
  const { id } = made.body.session;
  const closed = await lab.site.web(undefined, 'DELETE', `${SESSIONS}?sessionId=${id}`);
  expect(closed).toMatchObject({ status: 200, body: { refunded: '2.000000' } });
  expect((await balance()) - before).toBe(2n * ONE);
});

test('a wallet that is kept here is not signed for by its key when it has code, and opens with what its code takes', async () => {
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

test('code that takes a signature with more gas than an opening has does not take it', async () => {
  const wallet = await lab.wallet(2n * ONE);
  await setCode(wallet.lower, GREEDY);
  expect(await open(wallet, wallet)).toMatchObject(refusal);
});

test('code that says otherwise on chain costs the fee of one opening an hour', async () => {
  run();
  const wallet = await lab.wallet(2n * ONE);
  await setCode(wallet.lower, FALSE_FRIEND);
  expect(await open(wallet, wallet)).toMatchObject({ status: 503 });
  await expect.poll(() => failuresOf(wallet)).toEqual([{ failure: 'reverted' }]);
  const again = await open(wallet, wallet);
  expect([again.status, again.headers.get('retry-after')]).toEqual([429, '3600']);
  expect(await failuresOf(wallet)).toHaveLength(1);
  // All others can open theirs, those with code until there are too many.
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
