import type { ConnectionLike } from '@temporalio/client';
import type { Worker } from '@temporalio/worker';
import { createServer } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { expect, test } from 'vitest';
import { loadSettings } from '../../src/settings.js';
import { hostChecks, nodeCheck, pollingCheck } from '../../worker/checks.js';
import { Polling } from '../../worker/polling.js';
import { testEnvironment } from '../support/platform-environment.js';

const check = (rpcUrl: string) =>
  nodeCheck(
    loadSettings(
      testEnvironment({ DATABASE_URL: 'postgres://127.0.0.1:1/none', CHAIN_RPC_URL: rpcUrl }),
    ).chain,
  );

test('passes if the node names its latest block', async () => {
  const node = createServer((_, response) => {
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ jsonrpc: '2.0', id: 1, result: '0x1079' }));
  }).listen(0, '127.0.0.1');
  await once(node, 'listening');
  const { port } = node.address() as AddressInfo;
  try {
    await check(`http://127.0.0.1:${port}`)();
  } finally {
    node.close();
  }
});

test("fails without the node's address, which may hold a key", async () => {
  await expect(check('http://127.0.0.1:1/secret-key')()).rejects.toThrow(
    /^The node of chain \d+ does not answer$/,
  );
});

const PLACE = { connectionOptions: { address: 'temporal.test:7233' }, namespace: 'agents' };

/** A connection to a Temporal that answers. */
const CONNECTED = {
  withDeadline: (_: number | Date, call: () => Promise<unknown>) => call(),
  workflowService: { describeNamespace: () => Promise.resolve({}) },
} as unknown as ConnectionLike; // only the parts used here

const POLLS = {
  getState: () => 'RUNNING',
  options: { taskQueue: 'platform' },
} as unknown as Worker; // only the parts used here

test('fails until Temporal was reached, and until its task queues are polled', async () => {
  const polling = new Polling();
  await expect(pollingCheck(() => undefined, PLACE, polling)()).rejects.toThrow(
    'Temporal does not answer at temporal.test:7233',
  );
  const check = pollingCheck(() => CONNECTED, PLACE, polling);
  await expect(check()).rejects.toThrow('No task queue is polled yet');

  let end = () => undefined as void;
  const running = polling.during(POLLS, new Promise<void>((resolve) => (end = resolve)));
  await check();
  const drains = polling.during({ ...POLLS, getState: () => 'DRAINING' }, running);
  await expect(check()).rejects.toThrow('The task queue platform is not polled any more');
  end();
  await Promise.all([running, drains]);
  await expect(check()).rejects.toThrow('No task queue is polled yet');
});

test("fails without the host's Docker, and without the lease on the host's name", async () => {
  const good = hostChecks('here', { available: () => Promise.resolve(true) }, { isHeld: true });
  await good.docker();
  good.lease();
  const bad = hostChecks('here', { available: () => Promise.resolve(false) }, { isHeld: false });
  await expect(bad.docker()).rejects.toThrow('Docker does not answer');
  expect(() => bad.lease()).toThrow(`This Docker does not have the host's name "here"`);
});
