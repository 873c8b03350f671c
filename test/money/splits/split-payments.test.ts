import { randomUUID } from 'node:crypto';
import { decodeFunctionData, erc20Abi, type Hex } from 'viem';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { balanceOf } from '../../../src/money/ledger/ledger.js';
import { ChainPayments } from '../../../src/money/payments/chain-payments.js';
import {
  getSplit,
  RoyaltySplits,
  type NewSplit,
} from '../../../src/money/splits/royalty-splits.js';
import { SplitPayments, SplitWaitsError } from '../../../src/money/splits/split-payments.js';
import { queryRows } from '../../platform/database/catalog.js';
import { testDatabase, type TestDatabase } from '../../support/postgres.js';
import { testSecrets } from '../../support/secrets.js';
import { gasBudget } from '../gas/support.js';
import { makePayer, ONE, splitOf, type Payer } from './support.js';

const TOKEN: Hex = '0x20c0000000000000000000000000000000000000';

/** The platform's own chain, with up to a hundred payouts per transaction, and a chain with one each. */
const ATOMIC = 4217;
const ONE_BY_ONE = 8453;

let database: TestDatabase;
let payer: Payer;
beforeAll(async () => {
  database = await testDatabase();
});
afterAll(() => database?.close());
beforeEach(async () => {
  payer = await makePayer(database.db, testSecrets());
});

const owner = <Row extends object>(sql: string) => queryRows<Row>(database.ownerUrl, sql);

/** Returns a node that reports one balance for every wallet. */
const nodeOf = (chainId: number, tokenBalance: () => Promise<bigint>) => ({
  chainId,
  onBehalfOf: () => ({ tokenBalance }),
});

/** Creates a split on a chain that reports the balance of the wallet. */
async function written(
  chainId: number,
  {
    balance = 100n * ONE,
    recipients = 3,
    wanted,
  }: { balance?: bigint; recipients?: number; wanted?: Partial<NewSplit> } = {},
) {
  const by = {
    tenant: database.db.asUser(payer.id),
    actor: payer.id,
    requestId: 'a-request',
    idempotencyId: randomUUID(),
  };
  const splits = new RoyaltySplits({ chainId, address: TOKEN }, gasBudget(database.db));
  const { id } = await splits.create(by, { ...splitOf(payer, recipients), ...wanted });
  const chain = { balance, asked: 0 };
  const steps = new SplitPayments({
    database: database.db,
    payments: new ChainPayments(database.db),
    node: nodeOf(chainId, () => {
      chain.asked++;
      return Promise.resolve(chain.balance);
    }),
  });
  return {
    id,
    steps,
    chain,
    show: () => getSplit(by.tenant, id),
    payouts: async () => (await getSplit(by.tenant, id)).payouts.map(({ status }) => status),
    retry: () => splits.retry({ ...by, idempotencyId: randomUUID() }, id),
    /** Returns the payments requested for the split, with their decoded transfers. */
    async paid() {
      const rows = await owner<{
        cause: string;
        signer: string;
        calls: { to: string; data: Hex }[];
      }>(
        `SELECT cause, signer, calls FROM payments WHERE cause LIKE 'split:${id}:%'
          ORDER BY requested_at, cause`,
      );
      return rows.map(({ cause, signer, calls }) => ({
        cause,
        signer,
        transfers: calls.map(({ data, to }) => {
          const { args, functionName } = decodeFunctionData({ abi: erc20Abi, data });
          return [to, functionName, String(args?.[0]).toLowerCase(), args?.[1]];
        }),
      }));
    },
  };
}

/** Ends a payment as the signer would. */
async function end(cause: string, failure?: 'reverted' | 'unsignable') {
  const hash = `0x${randomUUID().replaceAll('-', '').repeat(2)}`;
  const values = failure
    ? `state = 'failed', failure = '${failure}'`
    : `state = 'confirmed', hash = '${hash}', block_number = 7`;
  await owner(`UPDATE payments SET ${values}, settled_at = now() WHERE cause = '${cause}'`);
  return hash;
}

const booked = async (split: string) =>
  owner<{ debit: string; amount: string }>(
    `SELECT debit, amount::text FROM ledger_transfers WHERE cause LIKE 'payout:${split}:%' ORDER BY cause`,
  );

describe('payments of a split', () => {
  test('requests one payment from the wallet with the dealt amounts if the chain allows it', async () => {
    const { id, paid, payouts, show, steps } = await written(ATOMIC);
    const causes = await steps.request(id);
    const dealt = (await show()).payouts.map(({ address, amount }) => [
      ...[TOKEN, 'transfer', address, BigInt(amount)],
    ]);
    expect(causes).toHaveLength(1);
    expect(await paid()).toEqual([{ cause: causes[0], signer: payer.wallet, transfers: dealt }]);
    expect(await payouts()).toEqual(['sent', 'sent', 'sent']);
  });

  test('requests one payment per payout on other chains, all before waiting for the first', async () => {
    const { id, paid, steps } = await written(ONE_BY_ONE);
    expect(await steps.request(id)).toEqual((await paid()).map(({ cause }) => cause));
    expect((await paid()).map(({ transfers }) => transfers.length)).toEqual([1, 1, 1]);
  });

  test('pays a hundred payouts in one transaction', async () => {
    const { id, steps } = await written(ATOMIC, { recipients: 100 });
    expect(await steps.request(id)).toHaveLength(1);
  });

  test('skips a recipient whose amount is zero', async () => {
    const { id, paid, payouts, steps } = await written(ATOMIC, { wanted: { totalAmount: 1n } });
    await steps.request(id);
    expect((await paid())[0]?.transfers).toHaveLength(1);
    expect(await payouts()).toEqual(['sent', 'skipped', 'skipped']);
  });

  test.each([ATOMIC, ONE_BY_ONE])(
    'books each payout once with its transaction, on the chain %d',
    async (chainId) => {
      const { id, show, steps } = await written(chainId);
      const hashes = new Map<string, string>();
      for (const cause of await steps.request(id)) {
        await expect(steps.settle(id, cause)).rejects.toBeInstanceOf(SplitWaitsError);
        await expect(steps.finish(id)).rejects.toBeInstanceOf(SplitWaitsError);
        hashes.set(cause, await end(cause));
        await Promise.all([steps.settle(id, cause), steps.settle(id, cause)]);
        await steps.settle(id, cause);
      }
      expect(await steps.finish(id)).toBe('completed');
      const { payouts, split } = await show();
      expect(split).toMatchObject({ status: 'completed', error: null });
      expect(split.completedAt).toBeInstanceOf(Date);
      for (const { payment, status, transaction } of payouts) {
        expect([status, transaction]).toEqual(['confirmed', hashes.get(payment ?? '')]);
      }
      const debit = `wallet:${payer.wallet}` as const;
      expect(await booked(id)).toEqual(payouts.map(({ amount }) => ({ debit, amount })));
      const left = await balanceOf(database.db.asPlatform(), debit, `usdc:${chainId}`);
      expect(left.balance).toBe(-BigInt(split.totalAmount));
    },
  );
});

describe('repeated or concurrent steps of a split', () => {
  test('requests no payment twice', async () => {
    const { chain, id, paid, steps } = await written(ONE_BY_ONE);
    const all = await Promise.all([1, 2, 3, 4].map(() => steps.request(id)));
    const asked = await paid();
    for (const causes of all) expect(causes).toEqual(asked.map(({ cause }) => cause));
    expect(asked).toHaveLength(3);
    // Payments in flight are not checked against the remaining balance.
    const checks = chain.asked;
    chain.balance = 0n;
    expect(await steps.request(id)).toEqual(all[0]);
    expect(chain.asked).toBe(checks);
  });

  test('fails no payout if a step finds the wallet empty after another step requested the payment', async () => {
    const { chain, id, payouts, steps } = await written(ATOMIC);
    let other: Promise<unknown> | undefined;
    const late = new SplitPayments({
      database: database.db,
      payments: new ChainPayments(database.db),
      node: nodeOf(ATOMIC, async () => {
        await (other ??= steps.request(id));
        return 0n;
      }),
    });
    expect(await late.request(id)).toHaveLength(1);
    expect(await payouts()).toEqual(['sent', 'sent', 'sent']);
    expect(chain.asked).toBe(1);
  });

  test('changes nothing in a split that has ended', async () => {
    const { id, show, steps } = await written(ATOMIC);
    for (const cause of await steps.request(id)) {
      await end(cause);
      await steps.settle(id, cause);
    }
    await steps.finish(id);
    const ended = await show();
    expect(await steps.request(id)).toEqual([]);
    expect(await steps.finish(id)).toBe('completed');
    expect(await show()).toEqual(ended);
    expect(await booked(id)).toHaveLength(3);
  });

  test.each(['completed', 'partial', 'failed'])(
    'requests no payment for a split that is %s, even with pending payouts',
    async (status) => {
      const { chain, id, paid, payouts, show, steps } = await written(ATOMIC);
      await owner(
        `UPDATE royalty_splits SET status = '${status}', completed_at = now() WHERE id = ${id}`,
      );
      expect(await steps.request(id)).toEqual([]);
      expect([chain.asked, await paid()]).toEqual([0, []]);
      expect(await payouts()).toEqual(['pending', 'pending', 'pending']);
      expect((await show()).split.status).toBe(status);
    },
  );

  test('does nothing for a split that no longer exists', async () => {
    const { steps } = await written(ATOMIC);
    expect(await steps.request('999999999')).toEqual([]);
    expect(await steps.finish('999999999')).toBeUndefined();
  });
});

describe('a wallet with insufficient balance', () => {
  test.each([ATOMIC, ONE_BY_ONE])(
    'pays nothing from a wallet with insufficient balance, on the chain %d',
    async (chainId) => {
      const { id, paid, show, steps } = await written(chainId, { balance: ONE - 1n });
      expect(await steps.request(id)).toEqual([]);
      expect(await steps.finish(id)).toBe('failed');
      const { payouts, split } = await show();
      expect(split).toMatchObject({
        status: 'failed',
        error: 'The balance of the wallet is too low',
      });
      expect(payouts.map(({ status }) => status)).toEqual(['failed', 'failed', 'failed']);
      expect(await paid()).toEqual([]);
      expect(await booked(id)).toEqual([]);
    },
  );

  test('pays a failed split on a retry once the wallet covers it', async () => {
    const { chain, id, payouts, retry, show, steps } = await written(ATOMIC, { balance: 0n });
    await steps.request(id);
    await steps.finish(id);
    await retry();
    expect((await show()).split).toMatchObject({ status: 'queued', error: null });
    chain.balance = ONE;
    const causes = await steps.request(id);
    await end(causes[0] ?? '');
    await steps.settle(id, causes[0] ?? '');
    expect(await steps.finish(id)).toBe('completed');
    expect(await payouts()).toEqual(['confirmed', 'confirmed', 'confirmed']);
  });

  test('pays the splits of a wallet one after another, so that each checks the real balance', async () => {
    const first = await written(ATOMIC, { balance: ONE });
    const second = await written(ATOMIC, { balance: ONE });
    const [cause = ''] = await first.steps.request(first.id);
    await expect(second.steps.request(second.id)).rejects.toBeInstanceOf(SplitWaitsError);
    expect(second.chain.asked).toBe(0);
    // A split of another wallet does not wait.
    const waiting = payer;
    payer = await makePayer(database.db, testSecrets());
    const other = await written(ATOMIC);
    expect(await other.steps.request(other.id)).toHaveLength(1);
    payer = waiting;

    await end(cause);
    await first.steps.settle(first.id, cause);
    await first.steps.finish(first.id);
    second.chain.balance = 0n;
    expect(await second.steps.request(second.id)).toEqual([]);
    expect(await second.steps.finish(second.id)).toBe('failed');
  });
});

describe('a failed payment of a split', () => {
  test('fails all payouts of the failed payment', async () => {
    const { id, payouts, show, steps } = await written(ATOMIC);
    const [cause = ''] = await steps.request(id);
    await end(cause, 'reverted');
    await steps.settle(id, cause);
    expect(await steps.finish(id)).toBe('failed');
    expect(await payouts()).toEqual(['failed', 'failed', 'failed']);
    expect((await show()).split.error).toBe('The payment was reverted on chain');
    expect(await booked(id)).toEqual([]);
  });

  test('leaves a split partial after one failed payment, and retries only that as a new payment', async () => {
    const { id, paid, payouts, retry, show, steps } = await written(ONE_BY_ONE);
    const causes = await steps.request(id);
    for (const [n, cause] of causes.entries()) {
      await end(cause, n === 1 ? 'unsignable' : undefined);
      await steps.settle(id, cause);
    }
    expect(await steps.finish(id)).toBe('partial');
    expect(await payouts()).toEqual(['confirmed', 'failed', 'confirmed']);
    expect((await show()).split.error).toBe('The wallet cannot sign');

    await retry();
    const again = await steps.request(id);
    expect(again).toHaveLength(1);
    expect(causes).not.toContain(again[0]);
    const all = await paid();
    expect(all).toHaveLength(4);
    expect(all.find(({ cause }) => cause === again[0])?.transfers).toEqual(
      all.find(({ cause }) => cause === causes[1])?.transfers,
    );
    await end(again[0] ?? '');
    await steps.settle(id, again[0] ?? '');
    expect(await steps.finish(id)).toBe('completed');
    expect(await booked(id)).toHaveLength(3);
  });
});

test('keeps a split waiting and unpaid while its chain is not configured', async () => {
  const { id, paid, show } = await written(ATOMIC);
  const elsewhere = new SplitPayments({
    database: database.db,
    payments: new ChainPayments(database.db),
    node: nodeOf(ONE_BY_ONE, () => Promise.resolve(100n * ONE)),
  });
  await expect(elsewhere.request(id)).rejects.toBeInstanceOf(SplitWaitsError);
  expect(await paid()).toEqual([]);
  expect((await show()).split.status).toBe('processing');
});
