import { forkUntilMessage } from '../child.js';
import { usageOf } from '../process-tree.js';
import type { Gateway } from '../../against/gateway.js';
import type { LoadOrder, LoadResult } from './load-order.js';

/** Where the wanted rate is too much for somebody: so many a second instead. */
const SLOW_RATE = 20;
/** At a constant rate, no more of what somebody can do than this: the rest would be queueing. */
const MOST_OF_HIGHEST = 0.7;

export interface Plan {
  readonly rounds: number;
  readonly seconds: number;
  /** Of the highest rate. */
  readonly connections: number;
  /** Calls a second where their time is measured. */
  readonly rate: number;
  /** Seconds. */
  readonly warmup: number;
}

/** One round as fast as it goes, and what an answer costs each of the processes. */
export interface Fastest extends LoadResult {
  readonly cpuMicroseconds: Readonly<Record<string, number>>;
}

export interface Measured {
  readonly gateway: Gateway;
  /** At which `whole` and `streamed` were measured. */
  readonly rate: number;
  readonly whole: LoadResult[];
  readonly streamed: LoadResult[];
  readonly fastest: Fastest[];
  /** All calls answered, those of the warm-up included. */
  answered: number;
}

/** Measures them in turns, round by round. @throws Error when a call fails. */
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
  const { message } = await forkUntilMessage<LoadResult>('ai/load', [JSON.stringify(order)]);
  if (message.failed === 0) return message;
  throw new Error(`${name} failed ${message.failed} calls, the first with ${message.firstFailure}`);
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
