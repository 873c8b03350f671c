import type { Hex } from 'viem';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { ChainNode } from '../../../src/money/chain/chain-node.js';
import { PaymentConflictError } from '../../../src/money/payments/chain-payments.js';
import { Signer } from '../../../src/money/payments/signer.js';
import { SigningKeys } from '../../../src/money/payments/signing-keys.js';
import { openKey } from '../../../src/money/wallets/open-key.js';
import { sealKey } from '../../../src/money/wallets/wallet-keys.js';
import { CHAIN_ID } from '../../support/chain/chain.js';
import { testSecrets } from '../../support/secrets.js';
import { until } from '../../support/until.js';
import {
  newAddress,
  NO_KEYS,
  ONE,
  paymentLab,
  transfer,
  type Payer,
  type PaymentLab,
} from './support.js';

let lab: PaymentLab;
let payer: Payer;
beforeAll(async () => {
  lab = await paymentLab();
});
beforeEach(async () => {
  payer = await lab.payer();
});
afterAll(() => lab?.close());

const stateOf = async (cause: string) => lab.payments.stateOf(cause);

/** Steps until no payment is left. */
async function payAll(signer: Signer = payer.signer): Promise<void> {
  for (let n = 0; n < 50; n++) if (!(await signer.step())) return;
  throw new Error('the signer never finishes');
}

describe('payments of a signer', () => {
  test('returns no state for an unknown payment', async () => {
    expect(await stateOf('nobody')).toBeUndefined();
  });

  test('makes a payment once, and reports its transaction and block', async () => {
    const { cause, to } = await payer.ask();
    expect(await stateOf(cause)).toMatchObject({ state: 'queued', hash: undefined });
    await payAll();
    const status = await stateOf(cause);
    expect(status).toMatchObject({ state: 'confirmed', failure: undefined });
    const receipt = await lab.rpc('eth_getTransactionReceipt', status?.hash);
    expect(receipt).toMatchObject({ blockNumber: `0x${status?.block?.toString(16)}` });
    expect(await lab.balanceOf(to)).toBe(ONE);
  });

  test('makes a payment once for repeated and concurrent requests', async () => {
    const to = newAddress();
    const request = { cause: `test:${to}`, calls: [transfer(to, ONE)] };
    await Promise.all([1, 2, 3, 4].map(() => payer.ask(request)));
    await payAll();
    await payer.ask(request);
    await payAll();
    expect(await lab.balanceOf(to)).toBe(ONE);
  });

  test('finishes a payment in one step if the chain mines at once and one confirmation suffices', async () => {
    const node = new ChainNode({ chainId: CHAIN_ID, url: lab.chain.rpcUrl });
    const receiptOf = node.receipt.bind(node);
    // Waits for the receipt, so that a busy machine does not need a second step.
    node.receipt = (hash) => until(() => receiptOf(hash));
    const quick = await lab.payer({ node });
    const { cause } = await quick.ask();
    await quick.signer.step();
    expect(await stateOf(cause)).toMatchObject({ state: 'confirmed' });
  });

  test('rejects a payment with the cause of another payment', async () => {
    const { cause } = await payer.ask();
    await expect(payer.ask({ cause })).rejects.toBeInstanceOf(PaymentConflictError);
    await payAll();
  });

  test('makes no call of a payment if one call would be reverted', async () => {
    const [first, second] = [newAddress(), newAddress()];
    const calls = [transfer(first, ONE), transfer(second, 1_000n * ONE)];
    const { cause } = await payer.ask({ calls });
    await payAll();
    expect(await stateOf(cause)).toMatchObject({
      state: 'failed',
      failure: 'refused',
      hash: undefined,
    });
    expect(await lab.balanceOf(first)).toBe(0n);
  });

  test('pays several new recipients in one transaction', async () => {
    const recipients = Array.from({ length: 20 }, newAddress);
    const { cause } = await payer.ask({ calls: recipients.map((to) => transfer(to, ONE)) });
    await payAll();
    expect(await stateOf(cause)).toMatchObject({ state: 'confirmed' });
    for (const to of recipients) expect(await lab.balanceOf(to)).toBe(ONE);
  });

  test('signs a payment from a stored wallet with its key', async () => {
    const { cause, to } = await payer.ask();
    const secrets = testSecrets();
    const { db } = lab.database;
    const wallet = sealKey(secrets, 'alice', payer.privateKey);
    const row = { id: payer.address, userId: 'alice', kind: 'imported', ...wallet } as const;
    await db.asUser('alice').transaction(({ Wallet }) => Wallet.create(row));
    const kept = (address: Hex) => openKey(db.asPlatform(), secrets, address);
    const parts = { ...payer.parts, keys: new SigningKeys(undefined, kept) };
    await payAll(new Signer(parts, payer.address));
    expect(await stateOf(cause)).toMatchObject({ state: 'confirmed' });
    expect(await lab.balanceOf(to)).toBe(ONE);
  });

  test('fails a payment without a key and signs nothing', async () => {
    const { cause } = await payer.ask();
    const keyless = { ...payer.parts, keys: new SigningKeys(undefined, NO_KEYS) };
    await payAll(new Signer(keyless, payer.address));
    expect(await stateOf(cause)).toMatchObject({ failure: 'unsignable', hash: undefined });
  });
});

describe('transaction costs of the operator', () => {
  const costs = async () => 100n * ONE - (await lab.balanceOf(payer.address));
  const hashOf = async (cause: string) => (await stateOf(cause))?.hash ?? '';

  test('books the fee in the ledger once, when the transaction is final', async () => {
    const { cause } = await payer.ask();
    await lab.rpc('evm_setAutomine', false);
    await payer.signer.step();
    expect(await lab.feeOf(await hashOf(cause))).toBeUndefined();
    await lab.rpc('evm_setAutomine', true);
    await lab.rpc('anvil_mine', '0x1');
    await Promise.all([payAll(), payAll(new Signer(payer.parts, payer.address))]);
    const booked = await lab.feeOf(await hashOf(cause));
    expect(booked).toBe((await costs()) - ONE);
    expect(booked).toBeGreaterThan(0n);
  });

  test('books the fee that the operator pays for another wallet', async () => {
    const wallet = await lab.payer();
    const { cause } = await wallet.ask();
    const kept = () => Promise.resolve(wallet.privateKey);
    const keys = new SigningKeys(payer, kept);
    await payAll(new Signer({ ...wallet.parts, keys }, wallet.address));
    expect(await lab.balanceOf(wallet.address)).toBe(99n * ONE);
    const booked = await lab.feeOf(await hashOf(cause));
    expect(booked).toBe(await costs());
    expect(booked).toBeGreaterThan(0n);
  });

  test('books no fee that a wallet pays itself', async () => {
    const { cause } = await payer.ask();
    const kept = () => Promise.resolve(payer.privateKey);
    const keys = new SigningKeys(undefined, kept);
    await payAll(new Signer({ ...payer.parts, keys }, payer.address));
    expect(await lab.feeOf(await hashOf(cause))).toBeUndefined();
  });
});

test('makes each of many payments of one signer once', async () => {
  const asked = await Promise.all(Array.from({ length: 30 }, () => payer.ask()));
  await payAll();
  for (const { cause, to } of asked) {
    expect(await stateOf(cause)).toMatchObject({ state: 'confirmed' });
    expect(await lab.balanceOf(to)).toBe(ONE);
  }
});

test('assigns consecutive nonces to payments requested before the earlier ones are in a block', async () => {
  await lab.rpc('evm_setAutomine', false);
  const asked = [];
  try {
    for (let n = 0; n < 3; n++) {
      asked.push(await payer.ask());
      await payer.signer.step();
    }
    const signed = await lab.database.db
      .asPlatform()
      .query('SELECT nonce FROM transactions WHERE signer = $address ORDER BY nonce', {
        address: payer.address,
      });
    expect(signed).toEqual(['0', '1', '2'].map((nonce) => ({ nonce })));
  } finally {
    await lab.rpc('evm_setAutomine', true);
  }
  await lab.rpc('anvil_mine', '0x1');
  await payAll();
  for (const { to } of asked) expect(await lab.balanceOf(to)).toBe(ONE);
});
