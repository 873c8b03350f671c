import { figure, median } from '../statistics.js';
import { printTable } from '../table.js';
import type { Gateway } from '../../against/gateway.js';
import type { LoadResult } from './load-order.js';
import type { Fastest, Measured } from './measure.js';

/** Milliseconds beyond a direct call to the provider. */
const AIM_P50_MS = 0.8;
const AIM_P99_MS = 3;
/** Minimum ratio to the rate of each third-party gateway. */
const AIMS: Readonly<Record<string, number>> = { LiteLLM: 40, Portkey: 3 };

/** Prints the time that a gateway adds to a call and to the first token of a stream. */
export function printTimes(measured: readonly Measured[]): void {
  console.log('\nAt a constant rate, milliseconds:\n');
  printTable(
    ['way', 'a second', 'p50', 'p99', 'p50 over direct', 'p99 over direct'],
    [
      ...timesOf(measured, ({ whole }) => whole, 'p50', 'p99'),
      ['aim, at most', '', '', '', AIM_P50_MS, AIM_P99_MS],
    ],
  );
  console.log('The same, streamed, until the first token:\n');
  printTable(
    ['way', 'a second', 'p50', 'p99', 'p50 over direct', 'p99 over direct'],
    timesOf(measured, ({ streamed }) => streamed, 'firstTokenP50', 'firstTokenP99'),
  );
}

function timesOf(
  measured: readonly Measured[],
  rounds: (of: Measured) => readonly LoadResult[],
  p50: 'p50' | 'firstTokenP50',
  p99: 'p99' | 'firstTokenP99',
) {
  const of = (
    each: Measured,
    value: keyof LoadResult & ('p50' | 'p99' | typeof p50 | typeof p99),
  ) => median(rounds(each).map((round) => round[value]));
  const [direct] = measured;
  return measured.map((each) => [
    each.gateway.name,
    each.rate,
    figure(of(each, p50)),
    figure(of(each, p99)),
    ...[p50, p99].map((value) =>
      direct && each !== direct ? figure(of(each, value) - of(direct, value)) : '',
    ),
  ]);
}

/** Prints the calls that each gateway answers and the CPU time of its processes. */
export function printRates(measured: readonly Measured[], product: Gateway): void {
  const rateOf = ({ fastest }: Measured) => median(fastest.map(({ perSecond }) => perSecond));
  const ours = measured.find(({ gateway }) => gateway === product);
  const rows = measured.map((each) => {
    const { name } = each.gateway;
    const aim = AIMS[name];
    const of = (value: (round: Fastest) => number) => figure(median(each.fastest.map(value)));
    return [
      name,
      figure(rateOf(each)),
      of(({ p50 }) => p50),
      of(({ p99 }) => p99),
      cpuOf(each),
      of(({ loadCpuMicroseconds }) => loadCpuMicroseconds),
      ours && aim !== undefined ? figure(rateOf(ours) / rateOf(each)) : '',
      aim ?? '',
    ];
  });
  console.log('As fast as the answers come:\n');
  printTable(
    [
      'way',
      'a second',
      'p50 ms',
      'p99 ms',
      'its CPU, µs each',
      "the load's",
      'this product over it',
      'aim',
    ],
    rows,
  );
}

/** Returns the CPU time of all processes, and of each if there are several. */
function cpuOf({ gateway, fastest }: Measured): string {
  const names = Object.keys(gateway.pids);
  const of = (name: string) => median(fastest.map((round) => round.cpuMicroseconds[name] ?? 0));
  const all = figure(names.reduce((sum, name) => sum + of(name), 0));
  if (names.length === 1) return all;
  return `${all} (${names.map((name) => `${name} ${figure(of(name))}`).join(', ')})`;
}
