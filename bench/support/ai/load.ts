// A separate program: `node load.js <LoadOrder as JSON>`. Requests chat completions as fast as the
// answers arrive or at a constant rate, and sends the result to its parent.
import { setTimeout as sleep } from 'node:timers/promises';
import { clientAddress } from '../client.js';
import { quantile } from '../statistics.js';
import { BareConnection, type Timed } from './connection.js';
import type { LoadOrder, LoadResult } from './load-order.js';

/** Milliseconds for connections and caches to warm up, which are not measured; at most a fourth of the time. */
const SETTLE_MS = 500;
/** Maximum number of connections at a constant rate. */
const MAX_CONNECTIONS = 256;
const MAX_FAILURES = 100;

const order = JSON.parse(process.argv[2] ?? '') as LoadOrder; // written by the parent
const target = new URL(order.url);
const [head, tail] = requestParts();
const settleMs = Math.min(SETTLE_MS, order.seconds * 250);
const whole: number[] = [];
const firstToken: number[] = [];
let asked = Math.floor(Math.random() * 65_536);
let answered = 0;
let failed = 0;
let firstFailure: string | undefined;

const cpu = process.cpuUsage();
const started = performance.now();
await (order.rate === undefined ? closedLoop() : openLoop(order.rate));
const took = (performance.now() - started) / 1_000;
const { user, system } = process.cpuUsage(cpu);
const result: LoadResult = {
  answered,
  failed,
  firstFailure,
  perSecond: answered / took,
  p50: quantile(whole, 0.5),
  p99: quantile(whole, 0.99),
  firstTokenP50: quantile(firstToken, 0.5),
  firstTokenP99: quantile(firstToken, 0.99),
  loadCpuMicroseconds: (user + system) / answered,
};
process.send?.(result, () => process.exit());

async function closedLoop(): Promise<void> {
  const deadline = started + order.seconds * 1_000;
  const askOn = async () => {
    let connection: BareConnection | undefined;
    while (performance.now() < deadline && failed < MAX_FAILURES) {
      connection = connection?.closed === false ? connection : await open();
      await measure(connection, performance.now());
    }
    connection?.close();
  };
  await Promise.all(Array.from({ length: order.connections }, askOn));
}

/** Sends requests on schedule, however long answers take; a request's time counts from its scheduled start. */
async function openLoop(rate: number): Promise<void> {
  const free: BareConnection[] = [];
  const waiting: number[] = [];
  let connections = 0;
  let sent = 0;

  const serve = async (connection: BareConnection) => {
    for (;;) {
      const arrived = waiting.shift();
      if (arrived === undefined) break;
      await measure(connection, arrived);
      if (connection.closed) break;
    }
    if (connection.closed) connections--;
    else free.push(connection);
  };
  const arrive = async (arrived: number) => {
    waiting.push(arrived);
    // The connection that was idle for longest, so that none is idle until the server closes it.
    const connection = free.shift();
    if (connection) return serve(connection);
    if (connections >= MAX_CONNECTIONS) return;
    connections++;
    await serve(await open());
  };

  for (; connections < order.connections; connections++) free.push(await open());
  const from = performance.now();
  const calls: Promise<void>[] = [];
  while (performance.now() - from < order.seconds * 1_000 && failed < MAX_FAILURES) {
    while (sent < ((performance.now() - from) * rate) / 1_000) {
      sent++;
      calls.push(arrive(performance.now()));
    }
    await sleep(1);
  }
  await Promise.all(calls);
  for (const connection of free) connection.close();
}

function open(): Promise<BareConnection> {
  return BareConnection.open(target.hostname, Number(target.port));
}

async function measure(connection: BareConnection, arrived: number): Promise<void> {
  try {
    count(await connection.ask(nextRequest()), arrived);
  } catch (error) {
    connection.close();
    fail(error instanceof Error ? error.message : String(error));
  }
}

function count({ status, body, firstContentAt, endedAt }: Timed, arrived: number): void {
  if (status !== 200 || firstContentAt === undefined) return fail(`${status}: ${body}`);
  answered++;
  if (arrived - started < settleMs) return;
  whole.push(endedAt - arrived);
  firstToken.push(firstContentAt - arrived);
}

function fail(reason: string): void {
  failed++;
  firstFailure ??= reason.slice(0, 300);
}

/** Returns the next request: each comes from another client, with the keys in turn. */
function nextRequest(): string {
  const number = asked++;
  const key = order.keys[number % order.keys.length] ?? '';
  return `${head}${key}\r\nx-forwarded-for: ${clientAddress(number)}${tail}`;
}

/** Returns the parts of a request before the key and after the client's address. */
function requestParts(): [string, string] {
  const body = JSON.stringify({
    model: order.model,
    messages: [
      { role: 'system', content: 'You answer in one sentence.' },
      { role: 'user', content: 'What is Koa?' },
    ],
    max_tokens: 64,
    temperature: 0.7,
    ...(order.stream && { stream: true, stream_options: { include_usage: true } }),
  });
  const headers = {
    host: target.host,
    'content-type': 'application/json',
    'content-length': String(body.length),
    ...order.headers,
  };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
  const start = [`POST ${target.pathname} HTTP/1.1`, ...lines, 'authorization: Bearer '];
  return [start.join('\r\n'), `\r\n\r\n${body}`];
}
