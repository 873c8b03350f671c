import { describe, expect, test } from 'vitest';
import { countCrash, crashesWithin, memoryAfter } from '../../src/types/watchdog.js';

const SETTINGS = { crashLoopWindowMs: 300_000, crashLoopThreshold: 3 };
const WINDOW = SETTINGS.crashLoopWindowMs;
const START = 1_700_000_000_000;

/** Counts crashes one after the other. @returns whether each of them made a loop. */
function loops(...times: readonly number[]): boolean[] {
  let crashes: readonly number[] = [];
  return times.map((at) => {
    const counted = countCrash(crashes, START + at, SETTINGS);
    crashes = counted.crashes;
    return counted.isLoop;
  });
}

describe('the third crash', () => {
  test('makes a loop at exactly the end of the window', () => {
    expect(loops(0, 1_000, WINDOW)).toEqual([false, false, true]);
  });

  test('makes none a millisecond later, and the fourth does', () => {
    expect(loops(0, 1_000, WINDOW + 1)).toEqual([false, false, false]);
    expect(loops(0, 1_000, WINDOW + 1, WINDOW + 2)).toEqual([false, false, false, true]);
  });

  test('makes one when all three come in the same millisecond', () => {
    expect(loops(0, 0, 0)).toEqual([false, false, true]);
  });

  test('makes none after a crash before the window, however many there were', () => {
    expect(loops(0, WINDOW + 1, 2 * WINDOW + 2, 3 * WINDOW + 3)).toEqual(Array(4).fill(false));
  });
});

describe('what is remembered', () => {
  test('is no more than the threshold, and the latest of it', () => {
    const crashes = [1, 2, 3].map((second) => START + second * 1_000);
    const counted = countCrash(crashes, START + 4_000, SETTINGS);
    expect(counted).toEqual({ crashes: [2, 3, 4].map((s) => START + s * 1_000), isLoop: true });
  });

  test('is without what was taken back: that does not count towards the third', () => {
    const takenBack = countCrash([START], START + 1_000, SETTINGS).crashes.slice(0, 1);
    expect(countCrash(takenBack, START + 2_000, SETTINGS)).toEqual({
      crashes: [START, START + 2_000],
      isLoop: false,
    });
  });

  test('is shown only as far as it still counts', () => {
    const crashes = [START, START + 1_000];
    expect(crashesWithin(crashes, START + WINDOW, WINDOW)).toEqual(crashes);
    expect(crashesWithin(crashes, START + WINDOW + 1, WINDOW)).toEqual([START + 1_000]);
    expect(crashesWithin(crashes, START + 2 * WINDOW, WINDOW)).toEqual([]);
  });
});

describe('a clock that goes backwards', () => {
  test('keeps crashes that seem to come: no crash is forgotten for it', () => {
    expect(loops(10_000, 9_000, 8_000)).toEqual([false, false, true]);
  });

  test('by more than the window does not keep them for as long as it was wrong', () => {
    const hour = 3_600_000;
    expect(loops(hour, 0, 1)).toEqual([false, false, false]);
  });
});

test('a threshold of one makes a loop of every crash', () => {
  const settings = { ...SETTINGS, crashLoopThreshold: 1 };
  expect(countCrash([], START, settings)).toEqual({ crashes: [START], isLoop: true });
});

describe('what a host has done by itself', () => {
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

  test('counts once, also where the supervisor has counted the same meanwhile', () => {
    const known = memoryAfter(at(1_000, [500, 2_100]), past, SETTINGS);
    expect(known).toEqual({ ...at(3_000, [500, 2_000]), version: 8 });
  });

  test('is no news to who knows of the same moment, or a later one', () => {
    expect(memoryAfter(at(3_000, [500]), past, SETTINGS)).toBeUndefined();
    expect(memoryAfter(at(3_001, [500]), past, SETTINGS)).toBeUndefined();
    expect(memoryAfter(at(1_000, []), [], SETTINGS)).toBeUndefined();
  });
});
