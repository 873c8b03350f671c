import type { Hex } from 'viem';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { Signer } from '../../../src/money/payments/signer.js';
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

/** An agent's wallet, whose key is nowhere but here. */
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
  throw new Error('it is never done');
}

/** Brings back what the database had before anything was signed for a payment. */
async function restoreQueued(...causes: readonly string[]): Promise<void> {
  for (const cause of causes) {
    await owner(
      `DELETE FROM transactions WHERE payment_id = (SELECT id FROM payments WHERE cause = '${cause}');
       UPDATE payments SET state = 'queued', nonce = NULL, hash = NULL, block_number = NULL,
              settled_at = NULL WHERE cause = '${cause}'`,
    );
  }
}

test('what may have been paid by an older state of the database is not paid again, and operators are told', async () => {
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
    expect(await lab.toldOf(cause)).toMatchObject([
      { event: 'payment_failed', failure: 'unknown' },
    ]);
  }
  // Nor is what was asked for before that was seen.
  expect(await lab.balanceOf(lost.to)).toBe(0n);
  // What is asked for from then on is paid.
  const later = await payer.ask();
  await payAll(payer);
  expect(await lab.balanceOf(later.to)).toBe(ONE);
});

test('a nonce of a kept wallet that another transaction has for good is of one that nobody knows', async () => {
  const payer = await wallet();
  await lab.rpc('evm_setAutomine', false);
  const { cause, to } = await payer.ask();
  await payer.signer.step();
  // The same with a higher fee, which the database that was restored does not know.
  const signed = await signTransaction(
    { signer: payer.privateKey, feePayer: undefined },
    {
      ...{ chainId: CHAIN_ID, nonce: 0n, calls: [transfer(to, ONE)], gas: 1_000_000n },
      ...{ maxFee: 900_000_000_000n, priorityFee: 90_000_000_000n },
    },
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

test("the platform's own signer goes on: its contract takes each call once", async () => {
  const payer = await lab.payer();
  const { cause } = await payer.ask();
  await payAll(payer);
  await restoreQueued(cause);
  await payAll(payer);
  expect(await lab.payments.stateOf(cause)).toMatchObject({ state: 'confirmed' });
});

test('two processes that pay for a wallet at once take none of it for unknown', async () => {
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
