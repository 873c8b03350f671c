import { randomUUID } from 'node:crypto';
import type { Database, Statements } from '../../../src/platform/database/database.js';

/** A call to be settled, without its id and path. */
export interface Call {
  readonly userId: string;
  readonly agentId: string | null;
  readonly provider: string;
  readonly model: string;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly costUsd: string;
  /** ISO 8601. */
  readonly at: string;
}

/** Logs calls in one statement, as the platform does. */
export async function settle(
  database: Database,
  calls: readonly Call[],
  db: Statements = database.asPlatform(),
): Promise<void> {
  const rows = calls.map((call) => ({ callId: randomUUID(), endpoint: '/test', ...call }));
  await db.query(`SELECT settle_usage($rows, '{}')`, { rows: JSON.stringify(rows) });
}

/** Returns a random number generator that repeats its sequence for a given seed. */
export function numbers(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

export interface CallsOptions {
  readonly users: readonly string[];
  /** Days (`YYYY-MM-DD`) on which calls may fall. */
  readonly days: readonly string[];
}

const TIMES = ['00:00:00.000Z', '00:00:00.001Z', '12:34:56.789Z', '23:59:59.999Z'];

/** Generates calls of every kind, many of them at day boundaries. */
export function randomCalls(count: number, seed: number, { users, days }: CallsOptions): Call[] {
  const random = numbers(seed);
  const oneOf = <T>(list: readonly T[]): T => {
    const chosen = list[random(list.length)];
    if (chosen === undefined) throw new TypeError('cannot choose from an empty list');
    return chosen;
  };
  return Array.from({ length: count }, () => ({
    userId: oneOf(users),
    agentId: oneOf([null, 'agent-1', 'agent-2']),
    provider: oneOf(['openai', 'groq']),
    model: oneOf(['small', 'large', 'free']),
    inputTokens: random(3) * 1_000_000_000,
    outputTokens: random(10_000),
    costUsd: (random(1_000_000_000) / 1e6).toFixed(6),
    at: `${oneOf(days)}T${oneOf(TIMES)}`,
  }));
}

/** Cost in millionths of a dollar, an integer, so that sums are exact. */
export const microsOf = ({ costUsd }: Call): number => Math.round(Number(costUsd) * 1e6);

/** Returns the sums of calls grouped by key, in the order of the keys. */
export function naiveSums<Key extends Record<string, unknown>>(
  calls: readonly Call[],
  keyOf: (call: Call) => Key,
) {
  const groups = new Map<string, { key: Key; calls: Call[] }>();
  for (const call of calls) {
    const key = keyOf(call);
    const group = groups.get(JSON.stringify(key)) ?? { key, calls: [] };
    group.calls.push(call);
    groups.set(JSON.stringify(key), group);
  }
  return [...groups.values()].map(({ key, calls: of }) => {
    const sum = (value: (call: Call) => number) =>
      of.reduce((total, each) => total + value(each), 0);
    return {
      ...key,
      inputTokens: sum(({ inputTokens }) => inputTokens),
      outputTokens: sum(({ outputTokens }) => outputTokens),
      totalTokens: sum(({ inputTokens, outputTokens }) => inputTokens + outputTokens),
      costUsd: sum(microsOf) / 1e6,
      calls: of.length,
    };
  });
}
