// @module-tag attack
import { randomUUID } from 'node:crypto';
import { encodeFunctionData, erc20Abi, type Hex } from 'viem';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { PATH_USD } from '../../../src/money/chain/tempo.js';
import type { AgentRow } from '../../../src/platform/database/models.js';
import { queryRows } from '../../platform/database/catalog.js';
import { cloneDesk, ESCROW, transfer, TREASURY, WHOLE, type CloneDesk } from './support.js';

/** Another token of the chain. */
const ALPHA_USD: Hex = '0x20c0000000000000000000000000000000000001';
const ELSEWHERE: Hex = '0x1111111111111111111111111111111111111111';

let desk: CloneDesk;
let user: Awaited<ReturnType<CloneDesk['user']>>;
let parent: AgentRow;
beforeAll(async () => {
  desk = await cloneDesk();
  user = await desk.user();
  parent = await desk.parentOf(user);
});
afterAll(() => desk?.close());

const asked = (paymentProof: unknown, given: Readonly<Record<string, unknown>> = {}) => ({
  parentAgentId: parent.id,
  name: `clone ${randomUUID()}`,
  paymentProof,
  ...given,
});

/** Returns the claims on a transaction. */
const claims = (hash: unknown) =>
  queryRows(
    desk.database.ownerUrl,
    `SELECT clone_id FROM payment_claims WHERE hash = '${String(hash).toLowerCase()}'`,
  );

async function refused(paymentProof: { readonly transactionHash: string }, reason: string) {
  const answer = await desk.clone(user, asked(paymentProof));
  expect(answer).toMatchObject({ status: 402, body: { code: 'PAYMENT_INVALID', reason } });
  expect(await claims(paymentProof.transactionHash)).toEqual([]);
}

const unknownHash = () => `0x${randomUUID().replaceAll('-', '').repeat(2)}`;

describe('refused payment for a clone, without a claim', () => {
  test('refuses a payment that was reverted', async () => {
    const payer = desk.chain.account(1);
    const hash = await desk.chain.send(payer, [transfer(TREASURY, 10n ** 30n)]);
    await refused(await desk.proof(payer, hash), 'reverted');
  });

  test('refuses a payment in another token', async () => {
    const payer = desk.chain.account(1);
    const hash = await desk.chain.send(payer, [transfer(TREASURY, WHOLE, ALPHA_USD)]);
    await refused(await desk.proof(payer, hash), 'wrong_token');
  });

  test('refuses a payment to another recipient', async () => {
    const payer = desk.chain.account(1);
    const hash = await desk.chain.send(payer, [transfer(ELSEWHERE, WHOLE)]);
    await refused(await desk.proof(payer, hash), 'wrong_recipient');
  });

  test('refuses a payment whose proof names another recipient', async () => {
    await refused(await desk.pay(WHOLE, { to: ELSEWHERE }), 'wrong_recipient');
  });

  test('refuses a transaction that transferred only its fee', async () => {
    const payer = desk.chain.account(1);
    const data = encodeFunctionData({
      abi: erc20Abi,
      functionName: 'approve',
      args: [TREASURY, 1n],
    });
    const hash = await desk.chain.send(payer, [{ to: PATH_USD, data }]);
    await refused(await desk.proof(payer, hash), 'wrong_recipient');
  });

  test('refuses a payment of another sender', async () => {
    await refused(await desk.pay(WHOLE, { from: desk.chain.account(2).address }), 'wrong_sender');
  });

  test('refuses a payment that is one unit too small', async () => {
    await refused(await desk.pay(WHOLE - 1n), 'underpaid');
  });

  test('refuses a payment smaller than the amount in its proof', async () => {
    await refused(await desk.pay(WHOLE, { amount: '1.000001' }), 'underpaid');
  });

  test.each([-901, 901])(
    "refuses a payment whose proof is %i seconds off its block's time",
    async (seconds) => {
      const proof = await desk.pay();
      // A timestamp far in the future is already refused as malformed.
      const timestamp = proof.timestamp + seconds;
      const answer = await desk.clone(user, asked({ ...proof, timestamp }));
      expect([400, 402]).toContain(answer.status);
      expect(await claims(proof.transactionHash)).toEqual([]);
      const late = { ...proof, timestamp };
      if (seconds < 0) await refused(late, 'timestamp');
    },
  );

  test('refuses a payment from a wallet that the user has not linked', async () => {
    const owner = await desk.user();
    await desk.link(owner, desk.chain.account(3));
    const body = asked(await desk.pay(), { parentAgentId: (await desk.parentOf(owner)).id });
    const answer = await desk.clone(owner, body);
    expect(answer.body).toMatchObject({ code: 'PAYMENT_INVALID', reason: 'not_linked' });
    await desk.link(owner, desk.chain.account(0));
    expect(await desk.clone(owner, body)).toMatchObject({ status: 202 });
  });

  test('refuses a transfer from the escrow, which settles another payment session', async () => {
    const escrow = desk.chain.account(ESCROW);
    const hash = await desk.chain.send(escrow, [transfer(TREASURY, WHOLE)]);
    await refused(await desk.proof(escrow, hash), 'wrong_sender');
  });

  test('refuses a settlement that the platform has sent to an earlier escrow', async () => {
    const earlier = desk.chain.account(3);
    const hash = await desk.chain.send(earlier, [transfer(TREASURY, WHOLE)]);
    const id = randomUUID();
    const signer = `0x${'a'.repeat(40)}`;
    await queryRows(
      desk.database.ownerUrl,
      `INSERT INTO payments (id, cause, chain_id, signer, calls)
       VALUES ('${id}', 'settlement:${randomUUID()}:1000000', 4217, '${signer}', '[]');
       INSERT INTO transactions (hash, payment_id, chain_id, signer, nonce, purpose, raw, max_fee,
                                 priority_fee, gas)
       VALUES ('${hash}', '${id}', 4217, '${signer}', 0, 'pay', '0x', 1, 0, 1)`,
    );
    await refused(await desk.proof(earlier, hash), 'wrong_sender');
  });

  test('refuses a payment that the chain does not have yet, with another code', async () => {
    const proof = { ...(await desk.pay()), transactionHash: unknownHash() };
    const answer = await desk.clone(user, asked(proof));
    expect(answer).toMatchObject({ status: 402, body: { code: 'PAYMENT_NOT_FOUND' } });
    expect(await claims(proof.transactionHash)).toEqual([]);
  });
});
