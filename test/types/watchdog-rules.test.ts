import { describe, expect, test } from 'vitest';
import { countCrash, crashesWithin, memoryAfter } from '../../src/types/watchdog.js';

const SETTINGS = { crashLoopWindowMs: 300_000, crashLoopThreshold: 3 };
const WINDOW = SETTINGS.crashLoopWindowMs;
const START = 1_700_000_000_000;

/**
 * Counts crashes in sequence.
 *
 * @returns for each crash, true if it made a crash loop.
 */
function loops(...times: readonly number[]): boolean[] {
  let crashes: readonly number[] = [];
  return times.map((at) => {
    const counted = countCrash(crashes, START + at, SETTINGS);
    crashes = counted.crashes;
    return counted.isLoop;
  });
}

describe('the third crash', () => {
  test('the third crash makes a loop at exactly the end of the window', () => {
    expect(loops(0, 1_000, WINDOW)).toEqual([false, false, true]);
  });

  test('a third crash 1 ms after the window makes no loop, and a fourth one does', () => {
    expect(loops(0, 1_000, WINDOW + 1)).toEqual([false, false, false]);
    expect(loops(0, 1_000, WINDOW + 1, WINDOW + 2)).toEqual([false, false, false, true]);
  });

  test('three crashes in the same millisecond make a loop', () => {
    expect(loops(0, 0, 0)).toEqual([false, false, true]);
  });

  test('crashes further apart than the window never make a loop', () => {
    expect(loops(0, WINDOW + 1, 2 * WINDOW + 2, 3 * WINDOW + 3)).toEqual(Array(4).fill(false));
  });
});

describe('recorded crashes', () => {
  test('records at most the latest crashes up to the threshold', () => {
    const crashes = [1, 2, 3].map((second) => START + second * 1_000);
    const counted = countCrash(crashes, START + 4_000, SETTINGS);
    expect(counted).toEqual({ crashes: [2, 3, 4].map((s) => START + s * 1_000), isLoop: true });
  });

  test('a withdrawn crash does not count towards the threshold', () => {
    const takenBack = countCrash([START], START + 1_000, SETTINGS).crashes.slice(0, 1);
    expect(countCrash(takenBack, START + 2_000, SETTINGS)).toEqual({
      crashes: [START, START + 2_000],
      isLoop: false,
    });
  });

  test('returns only the crashes that are still in the window', () => {
    const crashes = [START, START + 1_000];
    expect(crashesWithin(crashes, START + WINDOW, WINDOW)).toEqual(crashes);
    expect(crashesWithin(crashes, START + WINDOW + 1, WINDOW)).toEqual([START + 1_000]);
    expect(crashesWithin(crashes, START + 2 * WINDOW, WINDOW)).toEqual([]);
  });
});

describe('a clock set backwards', () => {
  test('counts crashes that seem to lie in the future after the clock is set back', () => {
    expect(loops(10_000, 9_000, 8_000)).toEqual([false, false, true]);
  });

  test('drops crashes that lie more than the window in the future after the clock is set back', () => {
    const hour = 3_600_000;
    expect(loops(hour, 0, 1)).toEqual([false, false, false]);
  });
});

test('with a threshold of one every crash makes a loop', () => {
  const settings = { ...SETTINGS, crashLoopThreshold: 1 };
  expect(countCrash([], START, settings)).toEqual({ crashes: [START], isLoop: true });
});

describe('crashes and repairs that the host reports', () => {
  const at = (since: number, crashes: readonly number[]) => ({
    version: 7,
    state: 'running' as const,
    since: START + since,
    crashes: crashes.map((crash) => START + crash),
    repairAttempts: 1,
    lastRepair: null,
  });
  const past = [at(2_000, [2_000]), at(3_000, [2_000])].map((memory, index) => ({
    id: `past-${index}`,
    from: 'running' as const,
    cause: 'exit' as const,
    reason: null,
    memory,
  }));

  test('counts a crash once if both the host and the supervisor have counted it', () => {
    const known = memoryAfter(at(1_000, [500, 2_100]), past, SETTINGS);
    expect(known).toEqual({ ...at(3_000, [500, 2_000]), version: 8 });
  });

  test("ignores the host's reports if the supervisor's record is as recent", () => {
    expect(memoryAfter(at(3_000, [500]), past, SETTINGS)).toBeUndefined();
    expect(memoryAfter(at(3_001, [500]), past, SETTINGS)).toBeUndefined();
    expect(memoryAfter(at(1_000, []), [], SETTINGS)).toBeUndefined();
  });
});
