import { forkUntilMessage } from '../child.js';
import { usageOf } from '../process-tree.js';
import type { Gateway } from '../../against/gateway.js';
import type { LoadOrder, LoadResult } from './load-order.js';

/** Calls a second for a gateway that cannot reach the planned rate. */
const SLOW_RATE = 20;
/** Maximum share of a gateway's highest rate at a constant rate: more would measure queueing. */
const MOST_OF_HIGHEST = 0.7;

export interface Plan {
  readonly rounds: number;
  readonly seconds: number;
  /** Connections for the highest rate. */
  readonly connections: number;
  /** Calls a second for the measurement of times. */
  readonly rate: number;
  /** Seconds of the warm-up. */
  readonly warmup: number;
}

/** One round at the highest rate, with the CPU time of each process for each answer. */
export interface Fastest extends LoadResult {
  readonly cpuMicroseconds: Readonly<Record<string, number>>;
}

export interface Measured {
  readonly gateway: Gateway;
  /** Rate at which `whole` and `streamed` were measured. */
  readonly rate: number;
  readonly whole: LoadResult[];
  readonly streamed: LoadResult[];
  readonly fastest: Fastest[];
  /** Answered calls, including those of the warm-up. */
  answered: number;
}

/**
 * Measures the gateways in turns, round by round.
 *
 * @throws Error if a call fails.
 */
export async function measure(
  gateways: readonly Gateway[],
  { rounds, seconds, connections, rate, warmup }: Plan,
): Promise<Measured[]> {
  const measured: Measured[] = [];
  for (const gateway of gateways) {
    const wanted = { connections, seconds: warmup };
    const streamed = await load(gateway, { ...wanted, stream: true, seconds: warmup / 2 });
    const whole = await load(gateway, { ...wanted, stream: false });
    const highest = Math.min(whole.perSecond, streamed.perSecond);
    measured.push({
      gateway,
      rate: highest * MOST_OF_HIGHEST > rate ? rate : Math.min(rate, SLOW_RATE),
      whole: [],
      streamed: [],
      fastest: [],
      answered: streamed.answered + whole.answered,
    });
  }
  for (let round = 0; round < rounds; round++) {
    for (const each of measured) {
      const constant = { connections: 8, seconds, rate: each.rate };
      const whole = await load(each.gateway, { ...constant, stream: false });
      const streamed = await load(each.gateway, { ...constant, stream: true });
      const fastest = await loadFast(each.gateway, { connections, seconds, stream: false });
      each.whole.push(whole);
      each.streamed.push(streamed);
      each.fastest.push(fastest);
      each.answered += whole.answered + streamed.answered + fastest.answered;
    }
  }
  return measured;
}

type How = Pick<LoadOrder, 'stream' | 'connections' | 'seconds' | 'rate'>;

async function load(gateway: Gateway, how: How): Promise<LoadResult> {
  const { url, model, keys, headers, name } = gateway;
  const order: LoadOrder = { url, model, keys, headers, ...how };
  const { message } = await forkUntilMessage<LoadResult>('ai/load', [JSON.stringify(order)], {
    seconds: how.seconds,
  });
  if (message.failed === 0) return message;
  throw new Error(`${name} failed ${message.failed} calls; first failure: ${message.firstFailure}`);
}

async function loadFast(gateway: Gateway, how: How): Promise<Fastest> {
  const before = await usageOf(gateway.pids);
  const result = await load(gateway, how);
  const after = await usageOf(gateway.pids);
  const spent = (name: string) => (after[name]?.cpu ?? Number.NaN) - (before[name]?.cpu ?? 0);
  const names = Object.keys(gateway.pids);
  const cpu = names.map((name) => [name, (spent(name) / result.answered) * 1e6] as const);
  return { ...result, cpuMicroseconds: Object.fromEntries(cpu) };
}
