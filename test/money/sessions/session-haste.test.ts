import { pino } from 'pino';
import { expect, test } from 'vitest';
import { SessionFastPath } from '../../../src/money/sessions/session-fast-path.js';
import type { SettledPayment } from '../../../src/money/payments/payment-watch.js';

const PAID: SettledPayment = {
  state: 'confirmed',
  hash: '0x1',
  block: 1,
  failure: undefined,
};

/** Records the steps done for sessions; their payments are final once the test calls `end`. */
function hasteLab() {
  const done: string[] = [];
  let end: () => void = () => undefined;
  const final = new Promise<void>((resolve) => (end = resolve));
  const haste = new SessionFastPath({
    openings: {
      finish(id) {
        done.push(`finish ${id}`);
        return Promise.resolve(true);
      },
    },
    settlements: {
      request(id) {
        done.push(`request ${id}`);
        const isClosed = done.includes(`settle ${id}`);
        const nothing = { next: 'nothing', state: 'closed' } as const;
        return Promise.resolve(isClosed ? nothing : { next: 'payment', cause: `of ${id}` });
      },
      settle(id) {
        done.push(`settle ${id}`);
        return Promise.resolve();
      },
    },
    payments: { settled: () => final.then(() => PAID) },
    log: pino({ enabled: false }),
  });
  return { done, end, haste };
}

const many = <T>(work: () => Promise<T>) => Promise.all(Array.from({ length: 30 }, work));
const waiting = () => new AbortController().signal;

test('opens and closes a session once, however many clients wait for it', async () => {
  const { done, end, haste } = hasteLab();
  const opened = many(() => haste.open('one', waiting()));
  const closed = many(() => haste.close('two', waiting()));
  end();
  await Promise.all([opened, closed]);
  expect(done.toSorted()).toEqual(['finish one', 'request two', 'request two', 'settle two']);
});

test('releases a client that leaves without disturbing the clients that still wait', async () => {
  const { done, end, haste } = hasteLab();
  const leaving = new AbortController();
  const [first, other] = [haste.open('one', leaving.signal), haste.open('one', waiting())];
  leaving.abort();
  await first;
  expect(done).toEqual([]);
  end();
  await other;
  expect(done).toEqual(['finish one']);
});

test('repeats the work on a later request', async () => {
  const { done, end, haste } = hasteLab();
  end();
  for (let n = 0; n < 2; n++) await haste.open('one', waiting());
  expect(done).toEqual(['finish one', 'finish one']);
});
