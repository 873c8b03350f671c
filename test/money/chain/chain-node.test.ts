import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import {
  encodeErrorResult,
  encodeFunctionData,
  erc20Abi,
  numberToHex,
  parseAbi,
  type Hex,
} from 'viem';
import { generatePrivateKey, privateKeyToAddress } from 'viem/accounts';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  CallRevertedError,
  ChainAwayError,
  ChainNode,
} from '../../../src/money/chain/chain-node.js';
import type { Receipt } from '../../../src/money/chain/answers.js';
import { FEE_MANAGER, feeTokenOf, PATH_USD } from '../../../src/money/chain/tempo.js';
import { transfersOf } from '../../../src/money/chain/transfers.js';
import { isSignedByWallet } from '../../../src/money/chain/wallet-signature.js';
import { CHAIN_ID, testChain, type TestChain } from '../../support/chain/chain.js';

/** Another token of the chain, in which its first accounts pay fees. */
const ALPHA_USD = '0x20c0000000000000000000000000000000000001';

let chain: TestChain;
let node: ChainNode;
let payer: Hex;

beforeAll(async () => {
  chain = await testChain();
  node = new ChainNode({ chainId: CHAIN_ID, url: chain.rpcUrl });
  payer = chain.account(0).address.toLowerCase() as Hex;
});
afterAll(() => chain?.close());

const newAddress = () => privateKeyToAddress(generatePrivateKey()).toLowerCase() as Hex;

const transfer = (token: Hex, to: Hex, amount: bigint) => ({
  to: token,
  data: encodeFunctionData({ abi: erc20Abi, functionName: 'transfer', args: [to, amount] }),
});

async function receiptOf(hash: Hex): Promise<Receipt> {
  const receipt = await node.receipt(hash);
  if (!receipt) throw new Error(`${hash} is in no block`);
  return receipt;
}

const HASH: Hex = `0x${'1'.repeat(64)}`;

/** As a node sends the receipt of a transaction. */
const receiptSent = {
  transactionHash: HASH,
  status: '0x1',
  blockHash: HASH,
  blockNumber: '0x1',
  logs: [],
};

/** The error of ERC-3668 that has a client fetch URLs. */
const offchainLookup = parseAbi([
  'error OffchainLookup(address sender, string[] urls, bytes data, bytes4 callback, bytes extra)',
]);

/** Starts a node that answers each method with the given result. */
async function stubNode(
  answerTo: (method: string, params: readonly { readonly gas?: string }[]) => object,
) {
  const paths: (string | undefined)[] = [];
  const server = createServer((request, response) => {
    paths.push(request.url);
    void text(request).then((body) => {
      const { method, params } = JSON.parse(body) as { method: string; params: [] };
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify({ jsonrpc: '2.0', id: 1, ...answerTo(method, params) }));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo; // TCP: always an object
  const url = `http://127.0.0.1:${port}`;
  return {
    url,
    paths,
    node: new ChainNode({ chainId: CHAIN_ID, url }),
    close: () => server.close(),
  };
}

describe('chain node', () => {
  test("a node returns an address's balance of a token", async () => {
    const owner = newAddress();
    expect(await node.tokenBalance(PATH_USD, owner)).toBe(0n);
    await chain.pay(owner, 1_500_000n);
    expect(await node.tokenBalance(PATH_USD, owner)).toBe(1_500_000n);
    expect(await node.tokenBalance(ALPHA_USD, owner)).toBe(0n);
  });

  test('a node returns the token in which an address pays fees, pathUSD by default', async () => {
    expect(await feeTokenOf(node, newAddress())).toBe(PATH_USD);
    expect(await feeTokenOf(node, payer)).toBe(ALPHA_USD);
  });

  test('a node returns the receipt and the block of a transaction, in any spelling of its hash', async () => {
    const hash = await chain.pay(newAddress(), 1n);
    const receipt = await receiptOf(`0x${hash.slice(2).toUpperCase()}`);
    expect(receipt).toMatchObject({ hash, succeeded: true });
    const block = await node.block(receipt.blockNumber);
    expect(block).toEqual({
      hash: receipt.blockHash,
      number: receipt.blockNumber,
      timestamp: expect.any(Number),
      transactions: [hash],
    });
    expect(Math.abs(Date.now() / 1_000 - (block?.timestamp ?? 0))).toBeLessThan(24 * 60 * 60);
    expect(await node.blockNumber()).toBeGreaterThanOrEqual(receipt.blockNumber);
  });

  test("a node's connections are reused", async () => {
    let connections = 0;
    const server = createServer((_, response) => {
      const answer = { jsonrpc: '2.0', id: 1, result: `0x${CHAIN_ID.toString(16)}` };
      response.setHeader('content-type', 'application/json').end(JSON.stringify(answer));
    });
    server.on('connection', () => connections++);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo; // TCP: always an object
    try {
      const stub = new ChainNode({ chainId: CHAIN_ID, url: `http://127.0.0.1:${port}` });
      for (let n = 0; n < 20; n++) expect(await stub.blockNumber()).toBe(CHAIN_ID);
      // Fewer connections than requests; the exact number depends on the machine's pauses.
      expect(connections).toBeLessThan(20);
    } finally {
      server.close();
    }
  });

  test('a node serves one owner while many requests of another owner hang', async () => {
    const hanging: string[] = [];
    const server = createServer((request, response) => {
      void text(request).then((body) => {
        const { method } = JSON.parse(body) as { method: string };
        if (method === 'eth_getTransactionReceipt') return hanging.push(method);
        const answer = { jsonrpc: '2.0', id: 1, result: `0x${CHAIN_ID.toString(16)}` };
        response.setHeader('content-type', 'application/json').end(JSON.stringify(answer));
      });
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo; // TCP: always an object
    try {
      const stub = new ChainNode({ chainId: CHAIN_ID, url: `http://127.0.0.1:${port}` });
      const [ada, bob] = ['ada', 'bob'].map((owner) => stub.onBehalfOf({ owner, isUrgent: false }));
      const asked = Array.from({ length: 220 }, () => ada?.receipt(`0x${'1'.repeat(64)}`));
      for (const each of asked) each?.catch(() => undefined);
      await expect.poll(() => hanging.length).toBe(20);
      // Ada's queue is full.
      await expect(ada?.blockNumber()).rejects.toThrow(ChainAwayError);
      expect(await bob?.blockNumber()).toBe(CHAIN_ID);
      expect(await stub.blockNumber()).toBe(CHAIN_ID);
      expect(hanging).toHaveLength(20);
    } finally {
      server.closeAllConnections();
      server.close();
    }
  });

  test(
    'a node that returns the receipt of another transaction is unavailable',
    { tags: 'attack' },
    async () => {
      const [asked, other] = [await chain.pay(newAddress(), 1n), await chain.pay(newAddress(), 2n)];
      const server = createServer((request, response) => {
        void text(request).then(async (body) => {
          const answer = await fetch(chain.rpcUrl, {
            method: 'POST',
            headers: { 'content-type': 'application/json' },
            body: body.replace(asked, other),
          });
          response.setHeader('content-type', 'application/json').end(await answer.text());
        });
      });
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
      const { port } = server.address() as AddressInfo; // TCP: always an object
      try {
        const stub = new ChainNode({ chainId: CHAIN_ID, url: `http://127.0.0.1:${port}` });
        expect(await stub.receipt(other)).toMatchObject({ hash: other });
        await expect(stub.receipt(asked)).rejects.toThrow(ChainAwayError);
      } finally {
        server.closeAllConnections();
        server.close();
      }
    },
  );

  test('a node returns undefined for an unknown receipt or block', async () => {
    expect(await node.receipt(`0x${'1'.repeat(64)}`)).toBeUndefined();
    expect(await node.block(1_000_000)).toBeUndefined();
  });

  test.each<[string, () => ChainNode]>([
    ['none is known', () => new ChainNode({ chainId: CHAIN_ID, url: undefined })],
    ['none answers', () => new ChainNode({ chainId: CHAIN_ID, url: 'http://127.0.0.1:1' })],
    ['it is of another chain', () => new ChainNode({ chainId: 1, url: chain.rpcUrl })],
  ])('a node is unavailable while %s', async (_, nodeThere) => {
    const away = nodeThere();
    const hash = await chain.pay(newAddress(), 1n);
    const asked = [
      away.tokenBalance(PATH_USD, payer),
      away.receipt(hash),
      away.block(1),
      away.blockNumber(),
      feeTokenOf(away, payer),
    ];
    for (const { status, reason } of (await Promise.allSettled(asked)) as PromiseRejectedResult[]) {
      expect(status).toBe('rejected');
      expect(reason).toBeInstanceOf(ChainAwayError);
    }
  });

  test('a node reports a reverted call, with or without a reason', async () => {
    for (const code of ['0x60006000fd', '0x602a60005260206000fd'] as const) {
      await expect(node.call({ data: code })).rejects.toThrow(CallRevertedError);
    }
  });

  test.each<[object, typeof CallRevertedError | typeof ChainAwayError]>([
    [{ code: 3 }, CallRevertedError],
    [{ code: -32_015, data: 'Reverted 0x' }, CallRevertedError],
    [{ code: -32_000, data: '0x' }, CallRevertedError],
    // Messages are ignored: the node may lack a block, lag behind or be overloaded.
    [{ code: -32_000, message: 'header not found' }, ChainAwayError],
    [{ code: -32_000, message: 'execution reverted', data: { trace: [] } }, ChainAwayError],
    [{ code: -32_005, message: 'limit exceeded', data: 'try again' }, ChainAwayError],
  ])("a node's error %j to a call counts as reverted or unavailable", async (error, expected) => {
    const server = createServer((request, response) => {
      void text(request).then((body) => {
        const { method } = JSON.parse(body) as { method: string };
        const answer = method === 'eth_call' ? { error } : { result: `0x${CHAIN_ID.toString(16)}` };
        response.setHeader('content-type', 'application/json');
        response.end(JSON.stringify({ jsonrpc: '2.0', id: 1, ...answer }));
      });
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo; // TCP: always an object
    try {
      const stub = new ChainNode({ chainId: CHAIN_ID, url: `http://127.0.0.1:${port}` });
      await expect(stub.call({ to: PATH_USD, data: '0x' })).rejects.toThrow(expected);
    } finally {
      server.close();
    }
  });

  test.each<[string, unknown, (stub: ChainNode) => Promise<unknown>]>([
    ['a receipt', { ...receiptSent, status: null }, (stub) => stub.receipt(HASH)],
    ['a receipt', { ...receiptSent, blockNumber: '1' }, (stub) => stub.receipt(HASH)],
    ['a receipt', { ...receiptSent, logs: [{ data: '0x' }] }, (stub) => stub.receipt(HASH)],
    ['a block', { hash: HASH, number: '0x1' }, (stub) => stub.block(1)],
    ['a number', `0x${'f'.repeat(14)}`, (stub) => stub.blockNumber()],
    ['the result of a call', '0x0', (stub) => stub.call({ to: PATH_USD, data: '0x' })],
  ])(
    'a node that sends an invalid value as %s is unavailable: %j',
    { tags: 'attack' },
    async (_, result, asking) => {
      const stub = await stubNode((method) => ({
        result: method === 'eth_chainId' ? numberToHex(CHAIN_ID) : result,
      }));
      await expect(asking(stub.node)).rejects.toThrow(ChainAwayError);
      stub.close();
    },
  );

  test('fetches no address that a contract names', { tags: 'attack' }, async () => {
    const stub = await stubNode((method) => {
      if (method === 'eth_chainId') return { result: numberToHex(CHAIN_ID) };
      const args = [PATH_USD, [`${stub.url}/{data}`], '0x', '0x00000000', '0x'] as const;
      const data = encodeErrorResult({ abi: offchainLookup, errorName: 'OffchainLookup', args });
      return { error: { code: 3, message: 'execution reverted', data } };
    });
    await expect(stub.node.call({ to: PATH_USD, data: '0x' })).rejects.toThrow(CallRevertedError);
    await expect(stub.node.tokenBalance(PATH_USD, PATH_USD)).rejects.toThrow(ChainAwayError);
    expect(stub.paths).toEqual(['/', '/', '/']);
    stub.close();
  });

  test('limits the gas of every call, which may run foreign code', { tags: 'attack' }, async () => {
    const calls: { readonly gas?: string }[] = [];
    const stub = await stubNode((method, params) => {
      if (method === 'eth_call') calls.push(params[0] ?? {});
      return { result: numberToHex(CHAIN_ID, { size: method === 'eth_call' ? 32 : undefined }) };
    });
    const ofAda = stub.node.onBehalfOf({ owner: 'ada', isUrgent: true });
    const signed = { address: newAddress(), text: 'text', signature: '0x00' } as const;
    await isSignedByWallet(signed, ofAda);
    await ofAda.tokenBalance(newAddress(), payer);
    await ofAda.call({ to: newAddress(), data: '0x', gas: 5n });
    expect(calls.map(({ gas }) => Number(gas))).toEqual([10_000_000, 10_000_000, 5]);
    stub.close();
  });

  test('a node is unavailable for the balance of an address that is not a token', async () => {
    await expect(node.tokenBalance(newAddress(), payer)).rejects.toThrow(ChainAwayError);
  });
});

describe('transfers of a transaction', () => {
  const fee = { token: ALPHA_USD, to: FEE_MANAGER, amount: expect.any(BigInt), isFee: true };

  test('transfers and the fee of a transaction are listed separately', async () => {
    const to = newAddress();
    const receipt = await receiptOf(await chain.pay(to, 7n));
    expect(transfersOf(receipt)).toEqual([
      { token: PATH_USD, from: payer, to, amount: 7n, isFee: false },
      { ...fee, from: payer },
    ]);
  });

  test('transfers of all calls of a transaction are listed', async () => {
    const [one, two] = [newAddress(), newAddress()];
    const calls = [transfer(PATH_USD, one, 3n), transfer(ALPHA_USD, two, 4n)];
    const receipt = await receiptOf(await chain.send(chain.account(0), calls));
    expect(receipt.succeeded).toBe(true);
    expect(transfersOf(receipt)).toEqual([
      { token: PATH_USD, from: payer, to: one, amount: 3n, isFee: false },
      { token: ALPHA_USD, from: payer, to: two, amount: 4n, isFee: false },
      { ...fee, from: payer },
    ]);
  });

  test('a reverted transaction has only its fee', async () => {
    const tooMuch = transfer(PATH_USD, newAddress(), 2n ** 100n);
    const receipt = await receiptOf(await chain.send(chain.account(0), [tooMuch]));
    expect(receipt.succeeded).toBe(false);
    expect(transfersOf(receipt)).toEqual([{ ...fee, from: payer }]);
  });

  test('logs in another format are not transfers', () => {
    const word = (digit: string): Hex => `0x${digit.repeat(64)}`;
    const address = (digit: string): Hex => `0x${'0'.repeat(24)}${digit.repeat(40)}`;
    const event: Hex = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef';
    const log = { address: PATH_USD, topics: [event, address('1'), address('2')], data: word('0') };
    expect(transfersOf({ logs: [log] })).toHaveLength(1);
    const logs = [
      { ...log, topics: [word('1'), address('1'), address('2')] },
      { ...log, topics: [event, address('1')] },
      { ...log, topics: [event, address('1'), address('2'), word('3')] },
      { ...log, topics: [event, word('1'), address('2')] },
      { ...log, data: '0x' as const },
      { ...log, data: `${word('0')}00` as const },
    ];
    expect(transfersOf({ logs })).toEqual([]);
  });
});
