import { createServer } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { expect, test } from 'vitest';
import { loadSettings } from '../../src/settings.js';
import { nodeCheck } from '../../worker/node-check.js';
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
