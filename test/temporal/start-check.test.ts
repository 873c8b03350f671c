import { once } from 'node:events';
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { pino } from 'pino';
import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  checkNamespace,
  UnknownNamespaceError,
  untilTemporalAnswers,
} from '../../temporal/start-check.js';
import { connectPatiently } from '../../worker/connect.js';
import { UnavailableError } from '../../src/lib/errors.js';
import { memoryLog } from '../api/http/support.js';
import { testTemporal, type TestTemporal } from '../support/temporal.js';

let temporal: TestTemporal;
let silent: Server;
const sockets: Socket[] = [];

beforeAll(async () => {
  temporal = await testTemporal();
  silent = createServer((socket) => sockets.push(socket)).listen(0, '127.0.0.1');
  await once(silent, 'listening');
});
afterAll(async () => {
  for (const socket of sockets) socket.destroy();
  silent?.close();
  await temporal?.close();
});

const placeOf = (namespace: string) => ({
  connectionOptions: { address: temporal.address },
  namespace,
});

test('passes a namespace that exists', async () => {
  await checkNamespace(temporal.connection, placeOf(temporal.namespace));
  const signal = new AbortController().signal;
  const log = pino({ level: 'silent' });
  const connection = await connectPatiently(placeOf(temporal.namespace), { log, signal });
  expect(connection).toBeDefined();
  await connection?.close();
});

test('names a namespace that does not exist, with the command that creates it', async () => {
  const command = `temporal operator namespace create --namespace absent --retention 168h --address ${temporal.address}`;
  const checked = checkNamespace(temporal.connection, placeOf('absent'));
  await expect(checked).rejects.toThrow(UnknownNamespaceError);
  await expect(checked).rejects.toThrow(`has no namespace "absent": run ${command}, then start`);
  const signal = new AbortController().signal;
  const log = pino({ level: 'silent' });
  await expect(connectPatiently(placeOf('absent'), { log, signal })).rejects.toThrow(command);
});

test('reports a server that accepts connections and never answers', async () => {
  const { port } = silent.address() as AddressInfo; // never a string for a TCP listener
  const stop = new AbortController();
  const { lines, log } = memoryLog();
  const place = { connectionOptions: { address: `127.0.0.1:${port}` }, namespace: 'default' };
  const connecting = connectPatiently(place, { log, signal: stop.signal });
  await expect.poll(() => lines.length, { timeout: 10_000 }).toBeGreaterThan(0);
  expect(lines[0]).toMatchObject({
    msg: `Temporal does not answer at 127.0.0.1:${port}; retrying`,
  });
  stop.abort();
  expect(await connecting).toBeUndefined();
});

test('reports the first failure once, and retries until an answer', async () => {
  const { lines, log } = memoryLog();
  const failures = [new UnavailableError('away'), new UnknownNamespaceError('a', 'b')];
  const reports: string[] = [];
  const attempt = () => {
    const failure = failures.shift();
    return failure ? Promise.reject(failure) : Promise.resolve('there');
  };
  const waiting = { log, signal: new AbortController().signal, outlivesNamespace: true };
  const onAway = (sentence: string) => void reports.push(sentence);
  expect(await untilTemporalAnswers(attempt, { ...waiting, onAway })).toBe('there');
  expect(reports).toEqual(['away; retrying']);
  expect(lines.map(({ msg }) => msg)).toEqual([
    'away; retrying',
    expect.stringContaining('has no namespace "a"'),
    'Temporal answers',
  ]);
});
