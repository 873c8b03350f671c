import { createPublicClient, custom, encodeFunctionResult, zeroAddress, type Hex } from 'viem';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { anvilAccount } from '../../../dev/chain/accounts.js';
import type { NodeRequest } from '../../../src/money/chain/chain-node.js';
import { escrowAbi } from '../../../src/money/chain/payment-escrow.js';
import { balanceOf } from '../../../src/money/ledger/ledger.js';
import { sessionAccount, spentAccount } from '../../../src/money/sessions/causes.js';
import { beginClosing } from '../../../src/money/sessions/session-settlements.js';
import { HoldNotSeenError, SessionOpenings } from '../../../src/money/sessions/session-openings.js';
import { escrowCall } from '../../contracts/escrow-chain.js';
import { ONE, settlementLab, type SettlementLab } from './settlement-lab.js';

let lab: SettlementLab;
beforeAll(async () => {
  lab = await settlementLab();
});
afterAll(() => lab?.close());

/** Restores the database to a time before the hold was recorded. */
const restoreOpening = (id: string) =>
  lab.owner(
    `UPDATE payment_sessions SET state = 'opening', opened_at = NULL, hold_expires_at = NULL
      WHERE id = '${id}'`,
  );

/** Restores the database to a time before anything was signed for the hold. */
async function restoreQueued(id: string): Promise<void> {
  await restoreOpening(id);
  const cause = `session-open:${id}`;
  await lab.owner(
    `DELETE FROM transactions WHERE payment_id = (SELECT id FROM payments WHERE cause = '${cause}');
     UPDATE payments SET state = 'queued', nonce = NULL, hash = NULL, block_number = NULL,
            settled_at = NULL WHERE cause = '${cause}'`,
  );
  expect(await lab.paid(cause)).toMatchObject({ state: 'failed', failure: 'refused' });
}

const finish = (id: string) => new SessionOpenings(lab.parts).step(id);

async function byOperator(id: string, call: 'settle' | 'close', amount: bigint): Promise<void> {
  const { holdId } = await lab.session(id);
  const done = await lab.escrow
    .at(lab.escrow.address)
    .send(lab.operator, escrowCall(call, holdId, amount));
  expect(done.succeeded).toBe(true);
}

/** Returns a node whose escrow has this hold: payer, amount, settled amount, expiry and end. */
function nodeWithHold(result: readonly [Hex, bigint, bigint, bigint, boolean]) {
  const answer = encodeFunctionResult({ abi: escrowAbi, functionName: 'holds', result });
  const client = createPublicClient({
    transport: custom({ request: () => Promise.resolve(answer) }),
  });
  return {
    chainId: lab.node.chainId,
    onBehalfOf: () => ({ read: <T>(request: NodeRequest<T>) => request(client) }),
  };
}

async function closeAtOnce(id: string): Promise<void> {
  await beginClosing(lab.db.asPlatform(), id);
  expect(await lab.run(id)).toBe('closed');
}

test('opens a session whose hold is in the escrow by an unknown transaction', async () => {
  const id = await lab.open(5n * ONE);
  await restoreQueued(id);
  await finish(id);
  expect(await lab.session(id)).toMatchObject({ state: 'active', failure: null });
  await lab.deliver(id, ONE);
  await closeAtOnce(id);
  expect(await lab.holdOf(id)).toMatchObject({ settled: ONE, closed: true });
});

test('does not open a session whose hold is closed in the escrow or has another amount', async () => {
  const closed = await lab.open(5n * ONE, anvilAccount(5));
  await byOperator(closed, 'close', 0n);
  await restoreQueued(closed);
  const other = await lab.open(5n * ONE, anvilAccount(6));
  await lab.owner(`UPDATE payment_sessions SET deposit = deposit + 1 WHERE id = '${other}'`);
  await restoreQueued(other);
  for (const id of [closed, other]) {
    await finish(id);
    expect(await lab.session(id)).toMatchObject({ state: 'failed', failure: 'refused' });
  }
});

test('debits nothing and ends the session if its hold is over when it is recorded', async () => {
  const closed = await lab.open(5n * ONE, anvilAccount(7));
  await byOperator(closed, 'close', 0n);
  const expired = await lab.open(5n * ONE, anvilAccount(8));
  for (const id of [closed, expired]) await restoreOpening(id);
  const node = nodeWithHold([anvilAccount(8).address, 5n * ONE, 0n, 1n, false]);
  await finish(closed);
  await new SessionOpenings({ ...lab.parts, node }).step(expired);
  for (const id of [closed, expired]) {
    expect(await lab.session(id)).toMatchObject({ state: 'settling' });
  }
  for (const id of [closed, expired]) expect(await lab.run(id)).toBe('closed');
});

test('a session stays in the state opening until the node has its confirmed hold', async () => {
  const id = await lab.open(5n * ONE, anvilAccount(4));
  await restoreOpening(id);
  const behind = new SessionOpenings({
    ...lab.parts,
    node: nodeWithHold([zeroAddress, 0n, 0n, 0n, false]),
  });
  await expect(behind.step(id)).rejects.toThrow(HoldNotSeenError);
  expect(await lab.session(id)).toMatchObject({ state: 'opening' });
  await finish(id);
  expect(await lab.session(id)).toMatchObject({ state: 'active' });
  await closeAtOnce(id);
});

test('closes a session of which the treasury received more than the database recorded', async () => {
  const payer = anvilAccount(9);
  const id = await lab.open(5n * ONE, payer);
  await lab.deliver(id, ONE);
  await byOperator(id, 'settle', 3n * ONE);
  const before = await lab.escrow.balanceOf(payer.address);
  await beginClosing(lab.db.asPlatform(), id);
  expect(await lab.run(id)).toBe('settling');
  await lab.retryNow(id);
  expect(await lab.run(id)).toBe('closed');
  expect(await lab.holdOf(id)).toMatchObject({ settled: 3n * ONE, closed: true });
  expect((await lab.escrow.balanceOf(payer.address)) - before).toBe(2n * ONE);
  expect(await lab.session(id)).toMatchObject({ delivered: '1000000', settled: '1000000' });
  for (const account of [sessionAccount(id), spentAccount(id)]) {
    expect((await balanceOf(lab.db.asPlatform(), account, 'pathusd')).balance).toBe(0n);
  }
});
