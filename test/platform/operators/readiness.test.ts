import { expect, test, vi } from 'vitest';
import { CheckFailedError, Readiness } from '../../../src/platform/operators/readiness.js';

const GOOD = () => Promise.resolve();

test('is ready while the process serves and every check passes', async () => {
  const readiness = new Readiness({ database: GOOD }, '1.2.3');
  readiness.serves();
  expect(await readiness.read()).toEqual({
    ready: true,
    release: '1.2.3',
    checks: { process: { ok: true }, database: { ok: true } },
  });
});

test('names the failing check and its reason', async () => {
  const readiness = new Readiness(
    {
      database: GOOD,
      temporal: () => Promise.reject(new CheckFailedError('Temporal does not answer')),
    },
    '1',
  );
  readiness.serves();
  expect(await readiness.read()).toMatchObject({
    ready: false,
    checks: { database: { ok: true }, temporal: { ok: false, reason: 'Temporal does not answer' } },
  });
});

test('names the reason of a connection that all addresses refused', async () => {
  const refused = new AggregateError([new Error('connect ECONNREFUSED ::1:5432')], '');
  const readiness = new Readiness({ database: () => Promise.reject(refused) }, '1');
  expect((await readiness.read()).checks.database).toEqual({
    ok: false,
    reason: 'connect ECONNREFUSED ::1:5432',
  });
});

test.each([
  ['starts', () => undefined],
  [
    'ends',
    (readiness: Readiness) => {
      readiness.serves();
      readiness.ends();
      readiness.serves();
    },
  ],
])('is not ready while the process %s', async (phase, enter) => {
  const readiness = new Readiness({ database: GOOD }, '1');
  enter(readiness);
  expect(await readiness.read()).toMatchObject({
    ready: false,
    checks: { process: { ok: false, reason: `The process ${phase}` } },
  });
});

test('checks at most once a second, however many callers there are', async () => {
  vi.useFakeTimers();
  try {
    const check = vi.fn(GOOD);
    const readiness = new Readiness({ database: check }, '1');
    await Promise.all([readiness.read(), readiness.read()]);
    await readiness.read();
    expect(check).toHaveBeenCalledTimes(1);
    vi.advanceTimersByTime(1_001);
    await readiness.read();
    expect(check).toHaveBeenCalledTimes(2);
  } finally {
    vi.useRealTimers();
  }
});

test('reports a silent check after 2 s, and does not call it again before its end', async () => {
  vi.useFakeTimers();
  try {
    let resolve = () => undefined as void;
    const silent = new Promise<void>((done) => (resolve = done));
    const check = vi.fn(() => silent);
    const readiness = new Readiness({ database: check }, '1');
    for (let round = 0; round < 3; round++) {
      const report = readiness.read();
      await vi.advanceTimersByTimeAsync(2_000);
      expect((await report).checks.database).toEqual({ ok: false, reason: 'No answer within 2 s' });
      await vi.advanceTimersByTimeAsync(1_001);
    }
    expect(check).toHaveBeenCalledTimes(1);
    resolve();
    await vi.advanceTimersByTimeAsync(1_001);
    expect((await readiness.read()).checks.database).toEqual({ ok: true });
  } finally {
    vi.useRealTimers();
  }
});
