const UNIT_MS = { m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

const SHORTEST_MS = 5 * UNIT_MS.m;
const LONGEST_MS = 7 * UNIT_MS.d;

/** The format that {@link isFrequency} accepts, in words. */
export const FREQUENCY_FORMAT = 'like 30m, 3h or 1d, from 5m to 7d';

export function isFrequency(text: string): boolean {
  const ms = parse(text);
  return ms !== undefined && ms >= SHORTEST_MS && ms <= LONGEST_MS;
}

/** Returns the milliseconds between two heartbeats. @throws RangeError if {@link isFrequency} refuses it. */
export function frequencyMs(frequency: string): number {
  const ms = parse(frequency);
  if (ms === undefined) throw new RangeError('not a frequency');
  return ms;
}

function parse(text: string): number | undefined {
  const match = /^([1-9]\d{0,4})([mhd])$/.exec(text);
  if (!match) return undefined;
  return Number(match[1]) * UNIT_MS[match[2] as keyof typeof UNIT_MS]; // the pattern admits only these letters
}
