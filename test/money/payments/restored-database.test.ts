import type { Hex } from 'viem';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { Signer } from '../../../src/money/payments/signer.js';
import { feeLimitsOf } from '../../../src/money/chain/fee-limits.js';
import { signTransaction } from '../../../src/money/payments/sign.js';
import { SigningKeys } from '../../../src/money/payments/signing-keys.js';
import { queryRows } from '../../platform/database/catalog.js';
import { CHAIN_ID } from '../../support/chain/chain.js';
import { newAddress, ONE, paymentLab, transfer, type Payer, type PaymentLab } from './support.js';

let lab: PaymentLab;
let operator: Payer;
beforeAll(async () => {
  lab = await paymentLab();
  operator = await lab.payer();
});
afterEach(() => lab.rpc('evm_setAutomine', true));
afterAll(() => lab?.close());

const owner = (sql: string) => queryRows<Record<string, unknown>>(lab.database.ownerUrl, sql);

/** Creates an agent's wallet whose key only this test has. */
async function wallet() {
  const payer = await lab.payer();
  const kept = (address: Hex) =>
    Promise.resolve(address === payer.address ? payer.privateKey : undefined);
  const own = { address: operator.address, privateKey: operator.privateKey };
  const signer = new Signer({ ...payer.parts, keys: new SigningKeys(own, kept) }, payer.address);
  return { ...payer, signer };
}

async function payAll({ signer }: Pick<Payer, 'signer'>): Promise<void> {
  for (let n = 0; n < 20; n++) if (!(await signer.step())) return;
  throw new Error('the signer never finishes');
}

/** Restores payments to their state before anything was signed. */
async function restoreQueued(...causes: readonly string[]): Promise<void> {
  for (const cause of causes) {
    await owner(
      `DELETE FROM transactions WHERE payment_id = (SELECT id FROM payments WHERE cause = '${cause}');
       UPDATE payments SET state = 'queued', nonce = NULL, hash = NULL, block_number = NULL,
              settled_at = NULL WHERE cause = '${cause}'`,
    );
  }
}

test('does not repeat a payment that an older state of the database may have paid, and notifies operators', async () => {
  const payer = await wallet();
  const asked = [await payer.ask(), await payer.ask()];
  await payAll(payer);
  await restoreQueued(...asked.map(({ cause }) => cause));
  const lost = await payer.ask();
  await payAll(payer);
  for (const { cause, to } of asked) {
    expect(await lab.balanceOf(to)).toBe(ONE);
    expect(await lab.payments.stateOf(cause)).toMatchObject({
      state: 'failed',
      failure: 'unknown',
    });
    expect(await lab.notifiedOf(cause)).toMatchObject([
      { event: 'payment_failed', failure: 'unknown' },
    ]);
  }
  // A payment requested before the gap was found is not paid either.
  expect(await lab.balanceOf(lost.to)).toBe(0n);
  // Later payments are paid.
  const later = await payer.ask();
  await payAll(payer);
  expect(await lab.balanceOf(later.to)).toBe(ONE);
});

test("fails a stored wallet's payment as unknown if an unknown transaction finally used its nonce", async () => {
  const payer = await wallet();
  await lab.rpc('evm_setAutomine', false);
  const { cause, to } = await payer.ask();
  await payer.signer.step();
  // The same payment with a higher fee, which is missing in the restored database.
  const signed = await signTransaction(
    { signer: payer.privateKey, feePayer: undefined },
    {
      chainId: CHAIN_ID,
      nonce: 0n,
      calls: [transfer(to, ONE)],
      gas: 1_000_000n,
      maxFee: 400_000_000_000n,
      priorityFee: 40_000_000_000n,
    },
    feeLimitsOf(CHAIN_ID),
  );
  await lab.rpc('eth_sendRawTransaction', signed.raw);
  await lab.rpc('evm_setAutomine', true);
  await lab.rpc('anvil_mine', '0x1');
  await payAll(payer);
  expect(await lab.balanceOf(to)).toBe(ONE);
  expect(await lab.payments.stateOf(cause)).toMatchObject({ state: 'failed', failure: 'unknown' });
  const next = await payer.ask({ calls: [transfer(newAddress(), ONE)] });
  await payAll(payer);
  expect(await lab.payments.stateOf(next.cause)).toMatchObject({ state: 'confirmed' });
});

test("pays again with the platform's own signer after a restore, as its contract accepts each call once", async () => {
  const payer = await lab.payer();
  const { cause } = await payer.ask();
  await payAll(payer);
  await restoreQueued(cause);
  await payAll(payer);
  expect(await lab.payments.stateOf(cause)).toMatchObject({ state: 'confirmed' });
});

test('fails no payment as unknown if two processes pay for a wallet concurrently', async () => {
  const payer = await wallet();
  const keys = new SigningKeys({ address: operator.address, privateKey: operator.privateKey }, () =>
    Promise.resolve(payer.privateKey),
  );
  const other = new Signer({ ...payer.parts, keys }, payer.address);
  const asked = [];
  for (let n = 0; n < 8; n++) asked.push(await payer.ask());
  for (let n = 0; n < 4; n++) await Promise.all([payer.signer.step(), other.step()]);
  await payAll(payer);
  for (const { to } of asked) expect(await lab.balanceOf(to)).toBe(ONE);
});
