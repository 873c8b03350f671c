// A separate program: `node load.js <url> <cookie> <connections> <seconds> <clients> [body] [headers] [file]`.
// Sends requests on keep-alive connections as fast as the answers arrive, and sends the result to its
// parent. Without a body, or with an empty one, a request is a GET. Headers are a JSON list, used in turn.
// The file has requests that are sent once each (`sent-once.ts`); the load ends with the last of them.
import http from 'node:http';
import { clientAddress } from './client.js';
import { readSentOnce } from './sent-once.js';
import { quantile } from './statistics.js';

const [
  url = '',
  cookie = '',
  connections = '1',
  seconds = '1',
  clients,
  bodyGiven = '',
  headersInTurn = '[]',
  file = '',
] = process.argv.slice(2);
const sameBody = bodyGiven === '' ? undefined : bodyGiven;
const once = file === '' ? undefined : readSentOnce(file);
const inTurn = JSON.parse(headersInTurn) as readonly Readonly<Record<string, string>>[]; // written by the parent
const agent = new http.Agent({ keepAlive: true, maxSockets: Number(connections) });
const target = new URL(url);
const latencies: number[] = [];
let asked = 0;
let failed = 0;
const statuses = new Set<number>();

const started = performance.now();
const deadline = started + Number(seconds) * 1_000;
await Promise.all(Array.from({ length: Number(connections) }, askOn));
const took = (performance.now() - started) / 1_000;
agent.destroy();
const result = {
  answered: latencies.length,
  failed,
  statuses: [...statuses],
  perSecond: latencies.length / took,
  p50: quantile(latencies, 0.5),
  p99: quantile(latencies, 0.99),
};
process.send?.(result, () => process.disconnect());

async function askOn(): Promise<void> {
  while (performance.now() < deadline && asked < (once?.length ?? Infinity)) {
    const sent = performance.now();
    const status = await ask();
    if (status === 200) latencies.push(performance.now() - sent);
    else {
      failed++;
      statuses.add(status);
    }
  }
}

function ask(): Promise<number> {
  return new Promise((resolve, reject) => {
    const number = asked++;
    const body = once?.[number]?.body ?? sameBody;
    const headers = {
      ...(cookie !== '' && { cookie }),
      ...inTurn[number % inTurn.length],
      ...once?.[number]?.headers,
      ...(clients === 'many' && { 'x-forwarded-for': clientAddress(number) }),
      ...(body !== undefined && {
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(body),
      }),
    };
    const request = http.request(
      {
        method: body === undefined ? 'GET' : 'POST',
        agent,
        host: target.hostname,
        port: target.port,
        path: target.pathname,
        headers,
        timeout: 10_000,
      },
      (response) => {
        response.resume();
        response.on('error', reject);
        response.on('end', () => resolve(response.statusCode ?? 0));
      },
    );
    request.on('timeout', () => request.destroy(new Error('no answer within 10 s')));
    request.on('error', reject);
    request.end(body);
  });
}
