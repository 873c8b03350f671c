import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { DockerHost } from '../../../src/docker/containers/docker-host.js';
import { DockerUnavailableError } from '../../../src/docker/containers/container-errors.js';
import { until } from '../../support/until.js';

const open = new Set<Socket>();
let connected = 0;
/** An engine that reads requests and never answers. */
const engine = createServer((socket) => {
  connected += 1;
  open.add(socket);
  socket.on('error', () => undefined).on('close', () => open.delete(socket));
  socket.resume();
});
let folder: string;
let host: DockerHost;

beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'aps-engine-'));
  const socket = path.join(folder, 'engine.sock');
  engine.listen(socket);
  await once(engine, 'listening');
  host = new DockerHost({ dockerHost: `unix://${socket}`, timeoutMs: 200 });
});
afterAll(async () => {
  for (const socket of open) socket.destroy();
  engine.close();
  await rm(folder, { recursive: true, force: true });
});

test.each<[string, () => Promise<unknown>]>([
  ['its availability', async () => expect(await host.available()).toBe(false)],
  ['its folder', () => expect(host.disk.space()).rejects.toThrow(DockerUnavailableError)],
  ['its bridge', () => expect(host.bridgeAddress()).rejects.toThrow(DockerUnavailableError)],
  ['an image', () => expect(host.images.find('one')).rejects.toThrow(DockerUnavailableError)],
])('a request that times out leaves no connection to the engine: %s', async (_, ask) => {
  const before = connected;
  await ask();
  expect(connected).toBeGreaterThan(before);
  await until(() => open.size === 0, 10_000);
});
