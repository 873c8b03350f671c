import { getContractAddress, zeroAddress, type Hex } from 'viem';
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { PATH_USD } from '../../src/money/chain/tempo.js';
import { CHAIN_ID } from '../support/chain/chain.js';
import { Random } from '../support/random.js';
import {
  escrowCall,
  escrowChain,
  FAR,
  HOLD_SECONDS,
  newNonce,
  openCall,
  type EscrowCall,
  type EscrowChain,
} from './escrow-chain.js';
import { refusingTokenCode } from './refusing-token.js';

let on: EscrowChain;
let escrow: ReturnType<EscrowChain['at']>;
let operator: Hex;

beforeAll(async () => {
  on = await escrowChain();
  escrow = on.at(on.address);
  operator = on.operator.address;
});
afterAll(() => on?.close());

let used = 1;
/** Returns a funded account that no other test uses, and that has approved the escrow. */
async function newPayer(deposit = 0n) {
  used += 1;
  const account = on.chain.account(used);
  await on.approve(account.address);
  if (deposit > 0n) await succeed(account.address, escrowCall('deposit', deposit));
  return account;
}

async function succeed(from: Hex, call: EscrowCall): Promise<void> {
  expect(await escrow.outcomeOf(from, call)).toBe('ok');
  expect(await escrow.send(from, call)).toMatchObject({ succeeded: true });
}

type Payer = Awaited<ReturnType<typeof newPayer>>;

/** Opens a hold with its payer's signature. */
async function opened(payer: Payer, amount: bigint) {
  const authorization = { payer: payer.address, amount, nonce: newNonce(), deadline: FAR };
  const call = openCall(authorization, await on.sign(payer, authorization));
  await succeed(operator, call);
  return { call, id: await on.idOf(payer.address, authorization.nonce) };
}

const settle = (id: Hex, cumulative: bigint) => escrowCall('settle', id, cumulative);
const close = (id: Hex, cumulative: bigint) => escrowCall('close', id, cumulative);
const reclaim = (id: Hex) => escrowCall('reclaim', id);

test('an escrow requires a token, an operator, a separate treasury and a hold time', async () => {
  await expect(on.deploy(on.treasury)).rejects.toThrow('escrow deployment failed');
  const nonce = await on.client.getTransactionCount({ address: operator });
  const itself = getContractAddress({ from: operator, nonce: BigInt(nonce) });
  for (const setup of [
    { treasury: itself },
    { treasury: zeroAddress },
    { operator: zeroAddress },
    { holdSeconds: 0 },
  ]) {
    await expect(on.deploy(PATH_USD, setup)).rejects.toThrow('escrow deployment failed');
  }
  expect(await on.deploy(PATH_USD)).toMatch(/^0x/);
});

describe('a deposit', () => {
  test('a deposit is withdrawn by its payer only, in part and to the last unit', async () => {
    const payer = await newPayer();
    const before = await on.balanceOf(payer.address);
    await succeed(payer.address, escrowCall('deposit', 100n));
    expect(await escrow.available(payer.address)).toBe(100n);
    expect(await on.balanceOf(payer.address)).toBe(before - 100n);
    for (const other of [operator, on.treasury, on.chain.account(0).address]) {
      expect(await escrow.outcomeOf(other, escrowCall('withdraw', 1n))).toBe('NotAvailable');
    }
    await succeed(payer.address, escrowCall('withdraw', 40n));
    expect(await escrow.outcomeOf(payer.address, escrowCall('withdraw', 61n))).toBe('NotAvailable');
    await succeed(payer.address, escrowCall('withdraw', 60n));
    expect(await on.balanceOf(payer.address)).toBe(before);
    expect(await escrow.outcomeOf(payer.address, escrowCall('withdraw', 1n))).toBe('NotAvailable');
  });

  test('a deposit and a withdrawal of nothing are refused', async () => {
    const payer = on.chain.account(0);
    for (const call of ['deposit', 'withdraw']) {
      expect(await escrow.outcomeOf(payer.address, escrowCall(call, 0n))).toBe('NothingToMove');
    }
  });

  test('a held deposit cannot be withdrawn, and the rest can', async () => {
    const payer = await newPayer(100n);
    await opened(payer, 70n);
    expect(await escrow.outcomeOf(payer.address, escrowCall('withdraw', 31n))).toBe('NotAvailable');
    await succeed(payer.address, escrowCall('withdraw', 30n));
  });
});

describe('a hold', { tags: 'attack' }, () => {
  test('a hold is opened once, by the operator only, as signed by its payer', async () => {
    const payer = await newPayer(100n);
    const stranger = privateKeyToAccount(generatePrivateKey());
    const nonce = newNonce();
    const meant = { payer: payer.address, amount: 60n, nonce, deadline: FAR };
    const signature = await on.sign(payer, meant);
    const outcome = (changes: Partial<typeof meant>, by = signature) =>
      escrow.outcomeOf(operator, openCall({ ...meant, ...changes }, by));

    for (const other of [payer.address, stranger.address, on.treasury]) {
      expect(await escrow.outcomeOf(other, openCall(meant, signature))).toBe('NotOperator');
    }
    expect(await outcome({ amount: 61n })).toBe('NotSigned');
    expect(await outcome({ amount: 59n })).toBe('NotSigned');
    expect(await outcome({ amount: 0n })).toBe('NothingToMove');
    expect(await outcome({ nonce: newNonce() })).toBe('NotSigned');
    expect(await outcome({ deadline: FAR + 1n })).toBe('NotSigned');
    expect(await outcome({ payer: stranger.address })).toBe('NotSigned');
    expect(await outcome({}, await on.sign(stranger, meant))).toBe('NotSigned');
    expect(await outcome({}, '0x')).toBe('NotSigned');
    const elsewhere = on.domain('0x1111111111111111111111111111111111111111');
    expect(await outcome({}, await on.sign(payer, meant, elsewhere))).toBe('NotSigned');
    const otherChain = on.domain(on.address, CHAIN_ID + 1);
    expect(await outcome({}, await on.sign(payer, meant, otherChain))).toBe('NotSigned');
    const past = { ...meant, deadline: 1n };
    expect(await outcome(past, await on.sign(payer, past))).toBe('DeadlinePassed');
    const tooMuch = { ...meant, amount: 101n };
    expect(await outcome(tooMuch, await on.sign(payer, tooMuch))).toBe('NotAvailable');

    await succeed(operator, openCall(meant, signature));
    expect(await outcome({})).toBe('NonceUsed');
    const again = { ...meant, amount: 10n };
    expect(await outcome(again, await on.sign(payer, again))).toBe('NonceUsed');
    expect(await escrow.available(payer.address)).toBe(40n);
  });

  test('a hold answers each call by each party in each of its states', async () => {
    const payer = await newPayer(1_000n);
    const stranger = on.chain.account(0).address;
    const holds = {
      none: { id: await on.idOf(payer.address, newNonce()), call: undefined },
      open: await opened(payer, 100n),
      part: await opened(payer, 100n),
      full: await opened(payer, 100n),
      closed: await opened(payer, 100n),
    };
    await succeed(operator, settle(holds.part.id, 40n));
    await succeed(operator, settle(holds.full.id, 100n));
    await succeed(operator, close(holds.closed.id, 40n));
    const parties = { operator, payer: payer.address, stranger, treasury: on.treasury };

    const outcomes = async () => {
      const found: Record<string, Record<string, string>> = {};
      for (const [state, { id, call }] of Object.entries(holds)) {
        const calls: Record<string, EscrowCall> = {
          ...(call && { open: call }),
          'settle 0': settle(id, 0n),
          'settle 40': settle(id, 40n),
          'settle 100': settle(id, 100n),
          'settle 101': settle(id, 101n),
          'close 40': close(id, 40n),
          'close 101': close(id, 101n),
          reclaim: reclaim(id),
        };
        for (const [name, each] of Object.entries(calls)) {
          const by = await Promise.all(
            Object.entries(parties).map(async ([party, from]) => [
              party,
              await escrow.outcomeOf(from, each),
            ]),
          );
          found[`${state}: ${name}`] = Object.fromEntries(by) as Record<string, string>;
        }
      }
      return found;
    };

    const ofOperator = (outcome: string) => ({
      operator: outcome,
      payer: 'NotOperator',
      stranger: 'NotOperator',
      treasury: 'NotOperator',
    });
    const ofNobody = (outcome: string) => ({
      operator: outcome,
      payer: outcome,
      stranger: outcome,
      treasury: outcome,
    });
    const ofPayer = (outcome: string) => ({ ...ofNobody('NotPayer'), payer: outcome });
    const expected = (reclaimed: string) => ({
      'none: settle 0': ofOperator('NotOpen'),
      'none: settle 40': ofOperator('NotOpen'),
      'none: settle 100': ofOperator('NotOpen'),
      'none: settle 101': ofOperator('NotOpen'),
      'none: close 40': ofOperator('NotOpen'),
      'none: close 101': ofOperator('NotOpen'),
      'none: reclaim': ofNobody('NotOpen'),
      'open: open': ofOperator('NonceUsed'),
      'open: settle 0': ofOperator('ok'),
      'open: settle 40': ofOperator('ok'),
      'open: settle 100': ofOperator('ok'),
      'open: settle 101': ofOperator('MoreThanHeld'),
      'open: close 40': ofOperator('ok'),
      'open: close 101': ofOperator('MoreThanHeld'),
      'open: reclaim': ofPayer(reclaimed),
      'part: open': ofOperator('NonceUsed'),
      'part: settle 0': ofOperator('NotCumulative'),
      'part: settle 40': ofOperator('ok'),
      'part: settle 100': ofOperator('ok'),
      'part: settle 101': ofOperator('MoreThanHeld'),
      'part: close 40': ofOperator('ok'),
      'part: close 101': ofOperator('MoreThanHeld'),
      'part: reclaim': ofPayer(reclaimed),
      'full: open': ofOperator('NonceUsed'),
      'full: settle 0': ofOperator('NotCumulative'),
      'full: settle 40': ofOperator('NotCumulative'),
      'full: settle 100': ofOperator('ok'),
      'full: settle 101': ofOperator('MoreThanHeld'),
      'full: close 40': ofOperator('NotCumulative'),
      'full: close 101': ofOperator('MoreThanHeld'),
      'full: reclaim': ofPayer(reclaimed),
      'closed: open': ofOperator('NonceUsed'),
      'closed: settle 0': ofOperator('NotOpen'),
      'closed: settle 40': ofOperator('NotOpen'),
      'closed: settle 100': ofOperator('NotOpen'),
      'closed: settle 101': ofOperator('NotOpen'),
      'closed: close 40': ofOperator('NotOpen'),
      'closed: close 101': ofOperator('NotOpen'),
      'closed: reclaim': ofNobody('NotOpen'),
    });
    expect(await outcomes()).toEqual(expected('NotExpired'));
    await on.pass(HOLD_SECONDS);
    expect(await outcomes()).toEqual(expected('ok'));

    // Reclaiming a hold closes it.
    const before = await on.balanceOf(payer.address);
    await succeed(payer.address, reclaim(holds.part.id));
    expect(await on.balanceOf(payer.address)).toBe(before + 60n);
    for (const call of [settle(holds.part.id, 100n), close(holds.part.id, 40n)]) {
      expect(await escrow.outcomeOf(operator, call)).toBe('NotOpen');
    }
    expect(await escrow.outcomeOf(payer.address, reclaim(holds.part.id))).toBe('NotOpen');
  });

  test('a hold pays the cumulative settlement to the treasury and the rest to the payer', async () => {
    const payer = await newPayer(100n);
    const { id } = await opened(payer, 100n);
    const [treasury, wallet] = [await on.balanceOf(on.treasury), await on.balanceOf(payer.address)];
    const moved = async () => (await on.balanceOf(on.treasury)) - treasury;
    await succeed(operator, settle(id, 30n));
    await succeed(operator, settle(id, 30n));
    expect(await moved()).toBe(30n);
    await succeed(operator, settle(id, 50n));
    expect(await moved()).toBe(50n);
    await succeed(operator, close(id, 75n));
    expect(await moved()).toBe(75n);
    expect(await on.balanceOf(payer.address)).toBe(wallet + 25n);
    expect(await escrow.hold(id)).toMatchObject({ amount: 100n, settled: 75n, closed: true });
  });

  test('a hold expires after the time that the contract sets', async () => {
    const payer = await newPayer(1n);
    const { id } = await opened(payer, 1n);
    const { timestamp } = await on.client.getBlock();
    const { expiry } = await escrow.hold(id);
    expect(Math.abs(expiry - Number(timestamp) - HOLD_SECONDS)).toBeLessThan(120);
  });
});

test('a contract wallet deposits, signs through its owner, and gets its money back', async () => {
  const owner = on.chain.account(0);
  const wallet = await on.chain.deployWallet(owner);
  await on.chain.pay(wallet, 1_000_000n);
  await on.impersonate(wallet);
  await on.approve(wallet);
  await succeed(wallet, escrowCall('deposit', 500n));
  const meant = { payer: wallet, amount: 300n, nonce: newNonce(), deadline: FAR };
  const stranger = privateKeyToAccount(generatePrivateKey());
  const forged = openCall(meant, await on.sign(stranger, meant));
  expect(await escrow.outcomeOf(operator, forged)).toBe('NotSigned');
  await succeed(operator, openCall(meant, await on.sign(owner, meant)));
  const before = await on.balanceOf(wallet);
  await succeed(operator, close(await on.idOf(wallet, meant.nonce), 100n));
  expect(await on.balanceOf(wallet)).toBe(before + 200n);
  expect(await escrow.available(wallet)).toBe(200n);
});

test('a payer who cannot receive the rest can withdraw it later, and the treasury is paid', async () => {
  const payer = on.chain.account(0);
  const made = await on.send(operator, undefined, refusingTokenCode(payer.address));
  const other = on.at(await on.deploy(made.contractAddress ?? '0x'));
  const { verifyingContract } = on.domain(other.address);
  const meant = { payer: payer.address, amount: 100n, nonce: newNonce(), deadline: FAR };
  const signature = await on.sign(payer, meant, on.domain(verifyingContract));
  await other.send(payer.address, escrowCall('deposit', 100n));
  expect(await other.send(operator, openCall(meant, signature))).toMatchObject({ succeeded: true });
  const id = await on.idOf(payer.address, meant.nonce);
  expect(await other.send(operator, close(id, 30n))).toMatchObject({ succeeded: true });
  expect(await other.hold(id)).toMatchObject({ settled: 30n, closed: true });
  expect(await other.available(payer.address)).toBe(70n);
});

describe('money paid in', () => {
  const SEQUENCES = 3;
  const STEPS = 40;

  test('money paid in equals money paid out and held, after any sequence of calls', async () => {
    const seed = Number(process.env.ESCROW_SEED ?? Date.now() % 1_000_000);
    console.log(`ESCROW_SEED=${seed}`);
    const random = new Random(seed);
    const payers = [await newPayer(), await newPayer()];
    for (let sequence = 0; sequence < SEQUENCES; sequence++) await sequenceOf(random, payers);
  });

  /** Makes random calls and compares each with its expected result. */
  async function sequenceOf(random: Random, payers: readonly Payer[]): Promise<void> {
    const balances = () =>
      Promise.all(
        [on.address, on.treasury, ...payers.map(({ address }) => address)].map(on.balanceOf),
      );
    const start = await balances();
    const available = new Map(
      await Promise.all(
        payers.map(async ({ address }) => [address, await escrow.available(address)] as const),
      ),
    );
    const freeAtStart = [...available.values()].reduce((sum, each) => sum + each, 0n);
    const wallet = new Map<Hex, bigint>(payers.map(({ address }) => [address, 0n]));
    let treasury = 0n;
    const holds: {
      id: Hex;
      payer: Hex;
      amount: bigint;
      settled: bigint;
      expiry: number;
      closed: boolean;
      call: EscrowCall;
    }[] = [];
    const add = (map: Map<Hex, bigint>, key: Hex, amount: bigint) =>
      map.set(key, (map.get(key) ?? 0n) + amount);

    for (let step = 0; step < STEPS; step++) {
      const payer = random.pick(payers);
      const { address } = payer;
      const amount = BigInt(random.below(60));
      const free = available.get(address) ?? 0n;
      const anybody = random.isOneIn(8)
        ? random.pick([operator, on.chain.account(0).address, address])
        : undefined;
      const hold = holds.length > 0 ? random.pick(holds) : undefined;
      const what = random.pick([
        'deposit',
        'withdraw',
        'open',
        'settle',
        'settle',
        'close',
        'reclaim',
        'pass',
      ] as const);
      if (what === 'pass') {
        await on.pass(random.below(HOLD_SECONDS));
        continue;
      }
      const said = `seed ${random.seed}, step ${step}: ${what} ${amount} by ${anybody ?? 'its own'}`;
      if (what === 'deposit') {
        const { succeeded } = await escrow.send(address, escrowCall('deposit', amount));
        expect(succeeded, said).toBe(amount > 0n);
        if (!succeeded) continue;
        add(available, address, amount);
        add(wallet, address, -amount);
      } else if (what === 'withdraw') {
        const { succeeded } = await escrow.send(address, escrowCall('withdraw', amount));
        expect(succeeded, said).toBe(amount > 0n && amount <= free);
        if (!succeeded) continue;
        add(available, address, -amount);
        add(wallet, address, amount);
      } else if (what === 'open') {
        const again = hold && random.isOneIn(5) ? hold : undefined;
        const meant = { payer: address, amount, nonce: newNonce(), deadline: FAR };
        const signer = random.isOneIn(6) ? on.chain.account(0) : payer;
        const call = again?.call ?? openCall(meant, await on.sign(signer, meant));
        const from = anybody ?? operator;
        const { succeeded, timestamp } = await escrow.send(from, call);
        const allowed = from === operator && !again && signer === payer;
        expect(succeeded, said).toBe(allowed && amount > 0n && amount <= free);
        if (!succeeded) continue;
        add(available, address, -amount);
        const id = await on.idOf(address, meant.nonce);
        const expiry = timestamp + HOLD_SECONDS;
        holds.push({ id, payer: address, amount, settled: 0n, expiry, closed: false, call });
      } else if (!hold) {
        continue;
      } else if (what === 'reclaim') {
        const from = anybody ?? hold.payer;
        const { succeeded, timestamp } = await escrow.send(from, reclaim(hold.id));
        const allowed = from === hold.payer && !hold.closed && timestamp >= hold.expiry;
        expect(succeeded, said).toBe(allowed);
        if (!succeeded) continue;
        hold.closed = true;
        add(wallet, hold.payer, hold.amount - hold.settled);
      } else {
        const from = anybody ?? operator;
        const { succeeded } = await escrow.send(from, escrowCall(what, hold.id, amount));
        const fits = amount >= hold.settled && amount <= hold.amount;
        expect(succeeded, said).toBe(from === operator && !hold.closed && fits);
        if (!succeeded) continue;
        treasury += amount - hold.settled;
        hold.settled = amount;
        if (what === 'close') {
          hold.closed = true;
          add(wallet, hold.payer, hold.amount - amount);
        }
      }
    }

    const held = holds
      .filter(({ closed }) => !closed)
      .reduce((sum, { amount, settled }) => sum + amount - settled, 0n);
    const free = [...available.values()].reduce((sum, each) => sum + each, 0n);
    const changes = (await balances()).map((balance, index) => balance - (start[index] ?? 0n));
    const said = `seed ${random.seed}`;
    expect(changes, said).toEqual([
      held + free - freeAtStart,
      treasury,
      ...payers.map(({ address }) => wallet.get(address)),
    ]);
    expect(
      changes.reduce((sum, each) => sum + each, 0n),
      said,
    ).toBe(0n);
    for (const { address } of payers) {
      expect(await escrow.available(address), said).toBe(available.get(address));
    }
    // Payers can get all their money back without the operator.
    await on.pass(HOLD_SECONDS);
    for (const { id, payer, closed } of holds) {
      if (!closed) await succeed(payer, reclaim(id));
    }
    for (const { address } of payers) {
      const left = await escrow.available(address);
      if (left > 0n) await succeed(address, escrowCall('withdraw', left));
    }
    const [left = 0n] = await balances();
    expect((start[0] ?? 0n) - left, said).toBe(freeAtStart);
  }
});
