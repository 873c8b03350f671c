import { pad, toHex, type Hex } from 'viem';
import { expect, test } from 'vitest';
import { PATH_USD } from '../../../src/money/chain/tempo.js';
import { ClonePayments } from '../../../src/agents/clones/clone-payments.js';
import { paymentFaultOf, paidBy } from '../../../src/agents/clones/payment-fault.js';

const TRANSFER = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef';

const [treasury, payer] = [`0x${'a1'.repeat(20)}`, `0x${'b2'.repeat(20)}`] as const;

/** A transaction that transferred one pathUSD. */
const moved = (from: Hex, to: Hex) => ({
  hash: pad('0x1'),
  succeeded: true,
  gasUsed: 50_000n,
  blockHash: pad('0x2'),
  blockNumber: 1,
  logs: [
    {
      address: PATH_USD,
      topics: [TRANSFER, pad(from), pad(to)] as const,
      data: toHex(1_000_000n, { size: 32 }),
    },
  ],
});

test('a transfer from the treasury to itself is not a payment', { tags: 'attack' }, () => {
  const due = { payer: treasury, treasury, amount: 1_000_000n };
  expect(paidBy(moved(treasury, treasury), due)).toBe(0n);
  expect(paymentFaultOf(moved(treasury, treasury), due)).toBe('wrong_sender');
  expect(paymentFaultOf(moved(payer, treasury), { ...due, payer })).toBeUndefined();
});

test('a payment that a reorganisation mined again and reverted is not a payment', async () => {
  const asked: unknown[][] = [];
  const note =
    (what: string) =>
    (...args: unknown[]) => {
      asked.push([what, ...args]);
      return Promise.resolve();
    };
  const paid = moved(payer, treasury);
  const clone = {
    id: 'clone',
    hash: paid.hash,
    userId: 'owner',
    chainId: '4217',
    payer,
    amount: '1000000',
    block: '1',
    paidAt: null,
    hasParent: true,
  };
  const check = (receipt: ReturnType<typeof moved>) =>
    new ClonePayments({
      store: {
        waiting: () => Promise.resolve(clone),
        fail: note('fail'),
        recordPaid: note('paid'),
      },
      node: {
        chainId: 4217,
        onBehalfOf: () => ({
          blockNumber: () => Promise.resolve(9),
          receipt: () => Promise.resolve(receipt),
        }),
      },
      chain: { treasury, confirmations: 3 },
    }).check('clone');
  expect(await check(paid)).toBe('paid');
  expect(await check({ ...paid, succeeded: false, logs: [] })).toBe('over');
  expect(asked).toEqual([
    ['paid', 'clone', 1_000_000n],
    ['fail', 'clone', expect.stringContaining('reorganisation removed the payment')],
  ]);
});
