import { createPublicClient, custom, encodeFunctionData, type Hex } from 'viem';
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest';
import { anvilAccount } from '../../../dev/chain/accounts.js';
import { PLATFORM, type NodeRequest } from '../../../src/money/chain/chain-node.js';
import { escrowAbi } from '../../../src/money/chain/payment-escrow.js';
import { PATH_USD } from '../../../src/money/chain/tempo.js';
import { balanceOf, transfer } from '../../../src/money/ledger/ledger.js';
import { closeAgedSessions } from '../../../src/money/sessions/close-aged-sessions.js';
import { sessionAccount, spentAccount } from '../../../src/money/sessions/causes.js';
import { Escrow } from '../../../src/money/sessions/escrow.js';
import {
  beginClosing,
  closeSessionsOf,
  settledBy,
  NOTIFY_AFTER_ATTEMPTS,
  SessionSettlements,
} from '../../../src/money/sessions/session-settlements.js';
import { SessionOpenings } from '../../../src/money/sessions/session-openings.js';
import { ALPHA_USD, escrowCall, HOLD_SECONDS } from '../../contracts/escrow-chain.js';
import { until } from '../../support/until.js';
import { handOver } from '../../../worker/hand-over.js';
import { paymentSessions } from '../../../worker/handed-rows.js';
import { ONE, settlementLab, type SettlementLab } from './settlement-lab.js';

const DAY_MS = 86_400_000;

let lab: SettlementLab;
beforeAll(async () => {
  lab = await settlementLab();
});
afterAll(() => lab?.close());
afterEach(() => void vi.useRealTimers());

const rpc = (method: string, ...params: unknown[]) =>
  lab.escrow.client.request({ method, params } as never);

const inLedger = async (account: Parameters<typeof balanceOf>[1]) =>
  (await balanceOf(lab.db.asPlatform(), account, 'pathusd')).balance;

test('settles delivered amounts as a cumulative sum without closing the session, and refunds the rest on closing', async () => {
  const payer = anvilAccount(4);
  const id = await lab.open(10n * ONE, payer);
  const [before, earned] = [await lab.escrow.balanceOf(payer.address), await inLedger('treasury')];
  expect(await lab.run(id)).toBe('active');
  await lab.deliver(id, 2n * ONE);
  expect(await lab.run(id)).toBe('active');
  await lab.deliver(id, 1n * ONE);
  expect(await lab.run(id)).toBe('active');
  expect(await lab.holdOf(id)).toMatchObject({ settled: 3n * ONE, closed: false });
  expect(await lab.session(id)).toMatchObject({ settled: '3000000', settlementDueAt: null });

  await lab.deliver(id, 1n * ONE);
  expect(await beginClosing(lab.db.asPlatform(), id)).toBe(true);
  expect(await beginClosing(lab.db.asPlatform(), id)).toBe(false);
  expect(await lab.run(id)).toBe('closed');
  expect(await lab.run(id)).toBe('closed');
  expect(await lab.holdOf(id)).toMatchObject({ settled: 4n * ONE, closed: true });
  expect((await lab.escrow.balanceOf(payer.address)) - before).toBe(6n * ONE);
  expect((await inLedger('treasury')) - earned).toBe(4n * ONE);
  expect([await inLedger(sessionAccount(id)), await inLedger(spentAccount(id))]).toEqual([0n, 0n]);
  const sent = await lab.owner(
    `SELECT cumulative, kind, state, payment FROM payment_settlements
      WHERE session_id = '${id}' ORDER BY cumulative`,
  );
  expect(sent).toEqual([
    ...['2000000', '3000000'].map((cumulative) => ({
      cumulative,
      kind: 'settle',
      state: 'confirmed',
      payment: `settlement:${id}:${cumulative}`,
    })),
    {
      cumulative: '4000000',
      kind: 'close',
      state: 'confirmed',
      payment: `settlement:${id}:4000000:close`,
    },
  ]);
});

test('closes a session after its last debit has ended, with all delivered debits', async () => {
  const id = await lab.open(5n * ONE);
  const served = await lab.hold(id, 2n * ONE);
  const released = await lab.hold(id, 1n * ONE);
  await beginClosing(lab.db.asPlatform(), id);
  expect(await lab.run(id)).toBe('waits for debits');
  await lab.post(id, served, 2n * ONE);
  expect(await lab.run(id)).toBe('waits for debits');
  const { dueAt } = await lab.session(id);
  expect(Math.abs(Number(dueAt) - Date.now())).toBeLessThan(5_000);
  await lab.owner(
    `UPDATE ledger_holds SET expires_at = now() - interval '1 second' WHERE cause = 'voucher:${released}'`,
  );
  await lab.db.call({ name: 'release', text: 'SELECT release_ended_holds($1)' }, [10]);
  expect(await lab.run(id)).toBe('closed');
  expect(await lab.holdOf(id)).toMatchObject({ settled: 2n * ONE, closed: true });
});

test('requests and books one payment when several runs of a session work concurrently', async () => {
  const id = await lab.open(5n * ONE);
  await lab.deliver(id, 2n * ONE);
  const earned = await inLedger('treasury');
  const steps = await Promise.all([1, 2, 3, 4].map(() => lab.settlements.request(id)));
  const cause = `settlement:${id}:2000000`;
  expect(steps).toEqual(steps.map(() => ({ next: 'payment', cause })));
  await lab.paid(cause);
  await Promise.all([1, 2, 3, 4].map(() => lab.settlements.settle(id, cause)));
  expect((await inLedger('treasury')) - earned).toBe(2n * ONE);
  await beginClosing(lab.db.asPlatform(), id);
  expect(await lab.run(id)).toBe('closed');
});

test('runs the next step of a session when its payment ends, and again if the step was lost', async () => {
  const changes = lab.db.changesOf('payment_sessions');
  await expect.poll(() => changes.count).toBeGreaterThan(0); // listens from now on
  const id = await lab.open(5n * ONE);
  await lab.deliver(id, ONE);
  const postpone = () =>
    lab.owner(`UPDATE payment_sessions SET due_at = now() + interval '1 hour' WHERE id = '${id}'`);
  const steps = { openings: new SessionOpenings(lab.parts), settlements: lab.settlements };
  await lab.settlements.step(id);
  await lab.settlements.step(id);
  await postpone();
  const { count } = changes;
  await lab.paid(`settlement:${id}:1000000`);
  await expect.poll(() => changes.count).toBeGreaterThan(count);
  const lost = { step: () => Promise.resolve() };
  await handOver(lab.db, paymentSessions({ openings: lost, settlements: lost }));
  await handOver(lab.db, paymentSessions(steps));
  expect(await lab.session(id)).toMatchObject({ settled: '0' });
  await lab.owner(
    `UPDATE payment_sessions SET due_at = due_at - interval '21 seconds' WHERE id = '${id}'`,
  );
  await handOver(lab.db, paymentSessions(steps));
  expect(await lab.session(id)).toMatchObject({ settled: '1000000' });

  // A payment that is refused before it has a transaction hands its session over, too.
  const { holdId } = await lab.session(id);
  const escrow = lab.escrow.at(lab.escrow.address);
  await escrow.send(lab.operator, escrowCall('close', holdId, 1n * ONE));
  await beginClosing(lab.db.asPlatform(), id);
  await lab.settlements.step(id);
  await postpone();
  await lab.paid(`settlement:${id}:1000000:close`);
  await handOver(lab.db, paymentSessions(steps));
  expect(await lab.session(id)).toMatchObject({ state: 'closed' });
});

test('settles an amount delivered during a settlement when it is due by the usual rules', async () => {
  const id = await lab.open(50n * ONE);
  await lab.deliver(id, 2n * ONE);
  const step = await lab.settlements.request(id);
  if (step.next !== 'payment') throw new Error('no payment was requested');
  await lab.deliver(id, 1n * ONE);
  await lab.paid(step.cause);
  await lab.settlements.settle(id, step.cause);
  const { settled, settlementDueAt } = await lab.session(id);
  expect(settled).toBe('2000000');
  expect(Number(settlementDueAt)).toBeGreaterThan(Date.now() + 1_800_000);
  expect(await lab.run(id)).toBe('active');
  // 10 pathUSD is the settle threshold: it is due at once.
  await lab.deliver(id, 10n * ONE);
  const next = await lab.settlements.request(id);
  if (next.next !== 'payment') throw new Error('no payment was requested');
  await lab.deliver(id, 10n * ONE);
  await lab.paid(next.cause);
  // The due time must not depend on the clock of this process.
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + DAY_MS });
  await lab.settlements.settle(id, next.cause);
  vi.useRealTimers();
  expect(await lab.run(id)).toBe('active');
  expect(await lab.session(id)).toMatchObject({ settled: '23000000' });
  await beginClosing(lab.db.asPlatform(), id);
  expect(await lab.run(id)).toBe('closed');
});

test('closes a session without deadlock while a transfer moves money between the same accounts', async () => {
  const id = await lab.open(5n * ONE);
  await lab.deliver(id, 2n * ONE);
  await beginClosing(lab.db.asPlatform(), id);
  const step = await lab.settlements.request(id);
  if (step.next !== 'payment') throw new Error('no payment was requested');
  await lab.paid(step.cause);
  const isWaiting = async () => {
    const waiting = await lab.owner(
      `SELECT FROM pg_locks JOIN pg_stat_activity USING (pid)
        WHERE NOT granted AND datname = current_database()`,
    );
    return waiting.length > 0 || undefined;
  };
  const paid = { debit: 'external', amount: 1n, currency: 'pathusd' } as const;
  const outcomeOf = (work: Promise<unknown>) => work.then(() => 'done', String);
  const closing: Promise<string>[] = [];
  const moving = lab.db.asPlatform().transaction(async (db) => {
    await transfer(db, { ...paid, credit: 'fees', cause: `test-first:${id}` });
    closing.push(outcomeOf(lab.settlements.settle(id, step.cause)));
    await until(isWaiting);
    await transfer(db, { ...paid, credit: 'treasury', cause: `test-second:${id}` });
  });
  expect(await outcomeOf(moving)).toBe('done');
  expect(await Promise.all(closing)).toEqual(['done']);
  expect(await lab.session(id)).toMatchObject({ state: 'closed', settled: '2000000' });
});

/** Fails a payment as if the chain had reverted it. */
const failPayment = (cause: string) =>
  lab.owner(
    `UPDATE payments SET state = 'failed', failure = 'reverted', settled_at = now()
      WHERE cause = '${cause}' AND state = 'queued'`,
  );

test('retries a failed settlement with a new payment, in the end hourly, and notifies operators', async () => {
  const id = await lab.open(5n * ONE);
  await lab.deliver(id, 1n * ONE);
  await beginClosing(lab.db.asPlatform(), id);
  // A second instance that works on the same session.
  const others = new SessionSettlements({ ...lab.parts, operator: lab.operator });
  for (let attempt = 1; attempt <= NOTIFY_AFTER_ATTEMPTS + 2; attempt += 1) {
    const step = await others.request(id);
    if (step.next !== 'payment') throw new Error(`no payment was requested at attempt ${attempt}`);
    expect(step.cause).toBe(`settlement:${id}:1000000:close${attempt === 1 ? '' : `:${attempt}`}`);
    await failPayment(step.cause);
    await others.settle(id, step.cause);
    expect(await others.request(id)).toEqual({ next: 'nothing', state: 'settling' });
    const pause = Number((await lab.session(id)).dueAt) - Date.now();
    expect(pause).toBeGreaterThan(attempt < NOTIFY_AFTER_ATTEMPTS ? 30_000 : 1_800_000);
    expect(pause).toBeLessThanOrEqual(3_600_000);
    await lab.retryNow(id);
  }
  expect(await lab.notifiedOf(id)).toEqual([
    { event: 'settlement_given_up', sessionId: id, attempts: NOTIFY_AFTER_ATTEMPTS },
  ]);
  // An operator closes the hold by hand; the next run detects it.
  const { holdId } = await lab.session(id);
  const escrow = lab.escrow.at(lab.escrow.address);
  await escrow.send(lab.operator, escrowCall('close', holdId, 1n * ONE));
  expect(await lab.run(id)).toBe('closed');
  expect(await lab.session(id)).toMatchObject({ settled: '1000000' });
});

test('backs off after failed settlements even if the session keeps delivering', async () => {
  const id = await lab.open(5n * ONE);
  for (const least of [30_000, 120_000, 480_000]) {
    await lab.deliver(id, 1n * ONE);
    const step = await lab.settlements.request(id);
    if (step.next !== 'payment') throw new Error('no payment was requested');
    await failPayment(step.cause);
    await lab.settlements.settle(id, step.cause);
    const { settlementDueAt } = await lab.session(id);
    expect(Number(settlementDueAt) - Date.now()).toBeGreaterThan(least);
    await lab.retryNow(id);
  }
  expect(await lab.run(id)).toBe('active');
  expect(await lab.session(id)).toMatchObject({ settled: '3000000' });
  await beginClosing(lab.db.asPlatform(), id);
  expect(await lab.run(id)).toBe('closed');
});

test('closes a session by its own final payment, not by the state of the chain before that', async () => {
  const id = await lab.open(5n * ONE);
  await lab.deliver(id, 1n * ONE);
  const first = await lab.settlements.request(id);
  if (first.next !== 'payment') throw new Error('no payment was requested');
  await failPayment(first.cause);
  await lab.settlements.settle(id, first.cause);
  // From here on, each request queries the chain.
  await beginClosing(lab.db.asPlatform(), id);
  const second = await lab.settlements.request(id);
  if (second.next !== 'payment') throw new Error('no payment was requested');
  const { hash } = await lab.paid(second.cause);
  expect(await lab.holdOf(id)).toMatchObject({ closed: true });
  expect(await lab.settlements.request(id)).toEqual(second);
  expect(await lab.session(id)).toMatchObject({ state: 'settling', settled: '0' });
  expect(await lab.run(id)).toBe('closed');
  expect(await settledBy(lab.db.asPlatform(), id)).toEqual([hash]);
});

test('ends a session whose hold is closed on chain after its last debit, and reports the unpaid amount', async () => {
  const id = await lab.open(5n * ONE);
  await lab.deliver(id, 1n * ONE);
  const served = await lab.hold(id, 2n * ONE);
  const { holdId } = await lab.session(id);
  const escrow = lab.escrow.at(lab.escrow.address);
  await escrow.send(lab.operator, escrowCall('close', holdId, 1n * ONE));
  expect(await lab.run(id)).toBe('waits for debits');
  expect(await lab.session(id)).toMatchObject({ state: 'settling', settled: '1000000' });
  await lab.post(id, served, 2n * ONE);
  expect(await lab.run(id)).toBe('closed');
  const ended = { delivered: '3000000', settled: '1000000' };
  expect(await lab.session(id)).toMatchObject(ended);
  expect(await lab.notifiedOf(id)).toContainEqual({
    event: 'session_unpaid',
    sessionId: id,
    amount: '2000000',
  });
});

test('counts a foreign change on chain only after its confirmations', async () => {
  const id = await lab.open(5n * ONE);
  await lab.deliver(id, 1n * ONE);
  const settlements = new SessionSettlements({ ...lab.parts, confirmations: 3 });
  const first = await settlements.request(id);
  if (first.next !== 'payment') throw new Error('no payment was requested');
  const { holdId } = await lab.session(id);
  const escrow = lab.escrow.at(lab.escrow.address);
  await escrow.send(lab.operator, escrowCall('close', holdId, 1n * ONE));
  await lab.paid(first.cause);
  await settlements.settle(id, first.cause);
  await lab.retryNow(id);
  const second = await settlements.request(id);
  expect(second).toEqual({ next: 'payment', cause: `${first.cause}:2` });
  expect(await lab.session(id)).toMatchObject({ state: 'active', settled: '0' });
  for (let n = 1; n < 3; n++) await rpc('anvil_mine', '0x1');
  await lab.paid(`${first.cause}:2`);
  await settlements.settle(id, `${first.cause}:2`);
  expect(await settlements.request(id)).toEqual({ next: 'nothing', state: 'closed' });
  expect(await lab.session(id)).toMatchObject({ settled: '1000000' });
});

test('queries the chain only while a failed settlement has no successor, and never another chain', async () => {
  const id = await lab.open(5n * ONE);
  const nobody = () => Promise.reject(new Error('the chain must not be queried'));
  const unasked = (chainId: number) => ({
    ...lab.parts,
    node: { chainId, onBehalfOf: () => ({ read: nobody, blockNumber: nobody }) },
  });
  const here = new SessionSettlements(unasked(lab.node.chainId));
  const elsewhere = new SessionSettlements(unasked(1));
  await lab.deliver(id, 1n * ONE);
  const step = await here.request(id);
  if (step.next !== 'payment') throw new Error('no payment was requested');
  await failPayment(step.cause);
  await here.settle(id, step.cause);
  await expect(here.request(id)).rejects.toThrow('the chain must not be queried');
  expect(await elsewhere.request(id)).toEqual({ next: 'nothing', state: 'active' });
  await lab.retryNow(id);
  await lab.deliver(id, 1n * ONE);
  expect(await lab.run(id)).toBe('active');
  expect(await lab.session(id)).toMatchObject({ settled: '2000000' });
  expect(await here.request(id)).toEqual({ next: 'nothing', state: 'active' });
  await beginClosing(lab.db.asPlatform(), id);
  expect(await lab.run(id)).toBe('closed');
});

/** Expects the opening to wait while another chain is configured and to resume on its own chain. */
async function waitsElsewhere(id: string, read: typeof lab.node.read): Promise<void> {
  const node = { chainId: 1, onBehalfOf: () => ({ read }) };
  const elsewhere = new SessionOpenings({ ...lab.parts, node });
  await elsewhere.step(id);
  expect(await lab.session(id)).toMatchObject({ state: 'opening' });
  await new SessionOpenings(lab.parts).step(id);
  expect(await lab.session(id)).toMatchObject({ state: 'active' });
  await beginClosing(lab.db.asPlatform(), id);
  expect(await lab.run(id)).toBe('closed');
}

test('keeps a session waiting to be opened while another chain is configured', async () => {
  const id = await lab.open(5n * ONE);
  await lab.owner(
    `UPDATE payment_sessions SET state = 'opening', opened_at = NULL, hold_expires_at = NULL
      WHERE id = '${id}'`,
  );
  await waitsElsewhere(id, lab.node.read.bind(lab.node));
});

test('keeps a session with a refused hold waiting while another chain is configured', async () => {
  const id = await lab.open(5n * ONE);
  await lab.owner(
    `UPDATE payment_sessions SET state = 'opening', opened_at = NULL, hold_expires_at = NULL
      WHERE id = '${id}';
     UPDATE payments SET state = 'failed', failure = 'refused', hash = NULL, block_number = NULL
      WHERE cause = 'session-open:${id}'`,
  );
  await waitsElsewhere(id, () => Promise.reject(new Error('the chain must not be queried')));
});

/** Returns an opening session to the state before its hold was seen on chain, and closes its wallet's sessions. */
async function closedBeforeOpening(): Promise<string> {
  const id = await lab.open(5n * ONE);
  await lab.owner(
    `UPDATE payment_sessions SET state = 'opening', opened_at = NULL, hold_expires_at = NULL
      WHERE id = '${id}'`,
  );
  const { address } = await lab.session(id);
  await closeSessionsOf(lab.db.asPlatform(), 'nobody', [address as Hex]);
  return id;
}

test('never activates a session whose account closed its sessions before the hold was on chain', async () => {
  const id = await closedBeforeOpening();
  await new SessionOpenings(lab.parts).step(id);
  expect(await lab.session(id)).toMatchObject({ state: 'settling' });
  expect(await lab.run(id)).toBe('closed');
  expect(await lab.holdOf(id)).toMatchObject({ settled: 0n, closed: true });
});

test('fails a closed session whose hold was refused', async () => {
  const id = await closedBeforeOpening();
  await lab.owner(
    `UPDATE payments SET state = 'failed', failure = 'refused', hash = NULL, block_number = NULL
      WHERE cause = 'session-open:${id}';
     UPDATE payment_sessions SET hold_id = '0x${'1'.repeat(64)}' WHERE id = '${id}'`,
  );
  await new SessionOpenings(lab.parts).step(id);
  expect(await lab.session(id)).toMatchObject({ state: 'failed', closingAt: null });
});

test('books at most the delivered amount of a hold that an operator closes by hand', async () => {
  const id = await lab.open(5n * ONE);
  await lab.deliver(id, 1n * ONE);
  const earned = await inLedger('treasury');
  const { holdId } = await lab.session(id);
  const escrow = lab.escrow.at(lab.escrow.address);
  await escrow.send(lab.operator, escrowCall('close', holdId, 3n * ONE));
  expect(await lab.run(id)).toBe('closed');
  expect(await lab.session(id)).toMatchObject({ settled: '1000000' });
  expect((await inLedger('treasury')) - earned).toBe(1n * ONE);
});

test('settles each session with the contract that holds its deposit, even if a new contract is configured', async () => {
  const before = await lab.open(5n * ONE, anvilAccount(8));
  const another = await lab.escrow.deploy(PATH_USD);
  const after = await lab.open(3n * ONE, anvilAccount(9), another);
  for (const id of [before, after]) {
    await lab.deliver(id, ONE);
    await lab.run(id);
    await beginClosing(lab.db.asPlatform(), id);
    expect(await lab.run(id)).toBe('closed');
  }
  const holds = await Promise.all(
    [lab.escrow.address, another].map(async (address, index) => {
      const { holdId } = await lab.session(index === 0 ? before : after);
      return lab.escrow.at(address).hold(holdId as Hex);
    }),
  );
  expect(holds).toMatchObject([
    { amount: 5n * ONE, settled: ONE, closed: true },
    { amount: 3n * ONE, settled: ONE, closed: true },
  ]);
});

test('refuses a contract whose token differs from the settings', async () => {
  const treasury = lab.escrow.treasury.toLowerCase() as Hex;
  const terms = { operator: lab.operator, treasury, holdSeconds: BigInt(HOLD_SECONDS) };
  const availableIn = (escrow: Hex) =>
    new Escrow(lab.node, { ...terms, escrow }).available(lab.operator, PLATFORM);
  expect(await availableIn(lab.escrow.address)).toBe(0n);
  const another = await lab.escrow.deploy(ALPHA_USD);
  await expect(availableIn(another)).rejects.toMatchObject({ differing: ['token'] });
});

test('books a settlement once after a three-block reorganization removed it', async () => {
  const id = await lab.open(5n * ONE, anvilAccount(9));
  await lab.deliver(id, 2n * ONE);
  const earned = await inLedger('treasury');
  const step = await lab.settlements.request(id);
  if (step.next !== 'payment') throw new Error('no payment was requested');
  const { signer } = lab.confirmedBy(4);
  const mine = () => rpc('anvil_mine', '0x1');
  const stateOf = async () => (await lab.payments.stateOf(step.cause))?.state;
  const isSettled = async () => (await lab.holdOf(id)).settled === 2n * ONE || undefined;
  await signer.step();
  await until(isSettled);
  await mine();
  await mine();
  await signer.step();
  expect(await stateOf()).toBe('broadcast');
  const [signed] = await lab.owner(
    `SELECT t.hash FROM transactions t JOIN payments p ON p.id = t.payment_id
      WHERE p.cause = '${step.cause}'`,
  );
  await rpc('evm_setAutomine', false);
  await rpc('anvil_reorg', 3, []);
  await rpc('anvil_dropTransaction', signed?.hash);
  expect((await lab.holdOf(id)).settled).toBe(0n);
  expect(await lab.settlements.settle(id, step.cause)).toBe(false);
  expect(await inLedger('treasury')).toBe(earned);
  await rpc('evm_setAutomine', true);
  await until(async () => {
    await signer.step();
    await mine();
    return (await stateOf()) === 'confirmed' || undefined;
  });
  await lab.settlements.settle(id, step.cause);
  await lab.settlements.settle(id, step.cause);
  expect((await lab.holdOf(id)).settled).toBe(2n * ONE);
  expect((await inLedger('treasury')) - earned).toBe(2n * ONE);
  await beginClosing(lab.db.asPlatform(), id);
  expect(await lab.run(id)).toBe('closed');
  expect(await lab.holdOf(id)).toMatchObject({ settled: 2n * ONE, closed: true });
});

test('resends a settlement to a node that was restored from before it, and books nothing twice', async () => {
  const id = await lab.open(5n * ONE, anvilAccount(3));
  await lab.deliver(id, 2n * ONE);
  const older = await rpc('evm_snapshot');
  const earned = await inLedger('treasury');
  expect(await lab.run(id)).toBe('active');
  await lab.deliver(id, 1n * ONE);
  expect(await lab.run(id)).toBe('active');
  await rpc('evm_revert', older);
  expect((await lab.holdOf(id)).settled).toBe(0n);
  await lab.confirmedBy(1).restore();
  await until(async () => (await lab.holdOf(id)).settled === 3n * ONE || undefined);
  await beginClosing(lab.db.asPlatform(), id);
  expect(await lab.run(id)).toBe('closed');
  expect(await lab.holdOf(id)).toMatchObject({ settled: 3n * ONE, closed: true });
  expect((await inLedger('treasury')) - earned).toBe(3n * ONE);
});

test('keeps booked settlements when the node reports an older state', async () => {
  const id = await lab.open(5n * ONE, anvilAccount(4));
  const { escrow, holdId } = await lab.session(id);
  const call = { abi: escrowAbi, functionName: 'holds', args: [holdId as Hex] } as const;
  const before = await lab.node.call({ to: escrow as Hex, data: encodeFunctionData(call) });
  await lab.deliver(id, 2n * ONE);
  expect(await lab.run(id)).toBe('active');
  const earned = await inLedger('treasury');
  await lab.deliver(id, 1n * ONE);
  const step = await lab.settlements.request(id);
  if (step.next !== 'payment') throw new Error('no payment was requested');
  await failPayment(step.cause);
  await lab.settlements.settle(id, step.cause);
  const older = createPublicClient({
    transport: custom({ request: () => Promise.resolve(before) }),
  });
  const node = {
    chainId: lab.node.chainId,
    onBehalfOf: () => ({
      blockNumber: () => lab.node.blockNumber(),
      read: <T>(request: NodeRequest<T>) => request(older),
    }),
  };
  await new SessionSettlements({ ...lab.parts, node }).request(id);
  expect(await lab.session(id)).toMatchObject({ settled: '2000000' });
  expect(await inLedger('treasury')).toBe(earned);
  await beginClosing(lab.db.asPlatform(), id);
  expect(await lab.run(id)).toBe('closed');
});

test('closes a session at its maximum age and before its hold expires', async () => {
  const [old, expiring, other] = [
    await lab.open(1n * ONE, anvilAccount(4)),
    await lab.open(1n * ONE, anvilAccount(5)),
    await lab.open(1n * ONE, anvilAccount(6)),
  ];
  await lab.owner(
    `UPDATE payment_sessions SET hold_expires_at = now() + interval '3 days'
      WHERE hold_expires_at IS NOT NULL;
     UPDATE payment_sessions SET opened_at = now() - interval '25 hours' WHERE id = '${old}';
     UPDATE payment_sessions SET hold_expires_at = now() + interval '11 hours' WHERE id = '${expiring}'`,
  );
  const ages = { holdMs: 2 * DAY_MS, maxAgeMs: DAY_MS };
  const [one, another] = await Promise.all([
    closeAgedSessions(lab.db, ages),
    closeAgedSessions(lab.db, ages),
  ]);
  expect(one + another).toBe(2);
  const states = await Promise.all([old, expiring, other].map((id) => lab.session(id)));
  expect(states.map(({ state }) => state)).toEqual(['settling', 'settling', 'active']);
  await beginClosing(lab.db.asPlatform(), other);
  for (const id of [old, expiring, other]) expect(await lab.run(id)).toBe('closed');
});

// Last test: it moves the chain's clock forward.
test(
  'ends a session with the true amounts and notifies operators if the wallet reclaims its hold before settlement',
  { tags: 'attack' },
  async () => {
    const payer = anvilAccount(7);
    const id = await lab.open(5n * ONE, payer);
    await lab.deliver(id, 1n * ONE);
    await lab.run(id);
    await lab.deliver(id, 2n * ONE);
    const { holdId } = await lab.session(id);
    await lab.escrow.pass(HOLD_SECONDS + 1);
    const reclaimed = await lab.escrow
      .at(lab.escrow.address)
      .send(payer.address, escrowCall('reclaim', holdId));
    expect(reclaimed.succeeded).toBe(true);
    expect(await lab.run(id)).toBe('closed');
    expect(await lab.session(id)).toMatchObject({ delivered: '3000000', settled: '1000000' });
    expect([await inLedger(sessionAccount(id)), await inLedger(spentAccount(id))]).toEqual([
      0n,
      0n,
    ]);
    const reported = await lab.notifiedOf(id);
    expect(reported.map(({ event }) => event)).toEqual(['payment_failed', 'session_unpaid']);
    expect(reported[1]).toEqual({ event: 'session_unpaid', sessionId: id, amount: '2000000' });
  },
);
