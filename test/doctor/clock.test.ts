import { expect, test } from 'vitest';
import { checkClock, clockFinding } from '../../src/doctor/clock-check.js';

test.each([
  ['ok', 1_500, 0],
  ['ok', 9_000, 8_000],
  ['warning', 5_000, 100],
  ['warning', -5_000, 100],
  ['failure', 40_000, 100],
  ['failure', -40_000, 100],
])('reports as %s a clock that differs by %i ms, known to within %i ms', (status, ms, within) => {
  expect(clockFinding(ms, within).status).toBe(status);
});

test('names the side of a wrong clock', () => {
  expect(clockFinding(40_000, 0).text).toContain("This machine's clock is 40.0 s behind that");
  expect(clockFinding(-40_000, 0).text).toContain('is 40.0 s ahead of that');
});

test('compares with the clock of the database', async () => {
  const answering = (now: number) => ({ call: <T>() => Promise.resolve([{ now }] as T[]) });
  expect(await checkClock(answering(Date.now()))).toMatchObject([{ status: 'ok' }]);
  expect(await checkClock(answering(Date.now() - 60_000))).toMatchObject([{ status: 'failure' }]);
});
