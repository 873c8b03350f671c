import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { shownAddress } from '../../src/money/chain/address.js';
import { ChainNode } from '../../src/money/chain/chain-node.js';
import type { GatewayAction } from '../../src/gateway/gateway-action.js';
import { databaseAlone } from '../support/dependencies.js';
import { CHAIN_ID, PATH_USD, testChain, type TestChain } from '../support/chain/chain.js';
import { testDatabase, type TestDatabase } from '../support/postgres.js';
import { sendJson, startProvider, type ProviderStub } from '../support/provider-stub.js';
import { chainTransfers } from '../../src/gateway/chain-transfers.js';

/** Runs the action on its parsed input, as the gateway does. */
const run = async (action: GatewayAction, input: unknown, buyer = 'buyer'): Promise<unknown> => {
  const { signal } = new AbortController();
  return action.run(action.input.parse(input), {
    id: crypto.randomUUID(),
    buyer,
    idempotencyKey: crypto.randomUUID(),
    signal,
  });
};

describe('chain transfers', () => {
  let chain: TestChain;
  let action: GatewayAction;
  beforeAll(async () => {
    chain = await testChain();
    action = chainTransfers(new ChainNode({ chainId: CHAIN_ID, url: chain.rpcUrl }));
  });
  afterAll(() => chain?.close());

  test('lists the transfers of a transaction for a hash in either case', async () => {
    const to = chain.account(3).address.toLowerCase() as `0x${string}`;
    const from = chain.account(0).address.toLowerCase();
    const hash = await chain.pay(to, 1_500_000n);
    const moved = await run(action, { hash: `0x${hash.slice(2).toUpperCase()}` });
    expect(moved).toMatchObject({ hash, succeeded: true, blockNumber: expect.any(Number) });
    expect(moved).toHaveProperty(
      'transfers',
      expect.arrayContaining([
        {
          token: shownAddress(PATH_USD),
          from: shownAddress(from),
          to: shownAddress(to),
          isFee: false,
          amount: '1.500000',
          amountRaw: '1500000',
        },
      ]),
    );
  });

  test('refuses the hash of a transaction that is not in a block', async () => {
    await expect(run(action, { hash: `0x${'1'.repeat(64)}` })).rejects.toMatchObject({
      status: 400,
    });
    await expect(run(action, { hash: '0x1' })).rejects.toThrow('64 hex digits');
  });

  test('fails while the chain is unavailable', async () => {
    const away = chainTransfers(new ChainNode({ chainId: CHAIN_ID, url: undefined }));
    await expect(run(away, { hash: `0x${'1'.repeat(64)}` })).rejects.toThrow('Chain unavailable');
  });
});

describe('ai chat', () => {
  let database: TestDatabase;
  let alone: Awaited<ReturnType<typeof databaseAlone>>;
  let provider: ProviderStub;
  let action: GatewayAction;
  beforeAll(async () => {
    database = await testDatabase();
    provider = await startProvider();
    alone = await databaseAlone(database, undefined, {
      OPENAI_API_KEY: provider.apiKey,
      OPENAI_BASE_URL: provider.baseUrl,
    });
    action = await alone.dependencies.gateway.catalogue.find('ai', 'chat');
  });
  afterAll(async () => {
    await alone?.close();
    await provider?.close();
    await database?.close();
  });

  const messages = [{ role: 'user', content: 'hello' }];

  test('answers a chat with the small model and at most 1024 tokens', async () => {
    expect(await run(action, { messages })).toEqual({
      model: 'openai/gpt-6-luna',
      content: 'said: hello',
      usage: { inputTokens: 3, outputTokens: 2 },
    });
    const [asked] = provider.requests;
    expect(asked?.body.model).toBe('gpt-6-luna');
    expect(JSON.stringify(asked?.body)).toContain('1024');
  });

  test('never falls back to a dearer model', async () => {
    const before = provider.requests.length;
    provider.behave((_, response) => sendJson(response, 500, {}));
    await expect(run(action, { messages })).rejects.toMatchObject({ status: 502 });
    provider.behave();
    const models = provider.requests.slice(before).map(({ body }) => body.model);
    expect(new Set(models)).toEqual(new Set(['gpt-6-luna']));
  });

  test(
    "a buyer's failing calls have no effect on the provider of other buyers",
    { tags: 'attack' },
    async () => {
      const second = await startProvider();
      const both = await databaseAlone(database, undefined, {
        OPENAI_API_KEY: provider.apiKey,
        OPENAI_BASE_URL: provider.baseUrl,
        OPENROUTER_API_KEY: second.apiKey,
        OPENROUTER_BASE_URL: second.baseUrl,
      });
      try {
        const chat = await both.dependencies.gateway.catalogue.find('ai', 'chat');
        const servedBy = async (buyer: string) => {
          const before = second.requests.length;
          await run(chat, { messages }, buyer);
          return second.requests.length === before ? 'first' : 'second';
        };
        expect([await servedBy('greedy'), await servedBy('other')]).toEqual(['first', 'first']);
        provider.behave((_, response) => sendJson(response, 500, {}));
        for (let failures = 0; failures < 3; failures++) await servedBy('greedy');
        provider.behave();
        expect([await servedBy('greedy'), await servedBy('other')]).toEqual(['second', 'first']);
      } finally {
        provider.behave();
        await both.close();
        await second.close();
      }
    },
  );

  test.each([
    ['more tokens', { messages, max_tokens: 1_025 }],
    ['nothing said', { messages: [] }],
    ['too much said', { messages: Array(2).fill({ role: 'user', content: 'é'.repeat(5_000) }) }],
    ['another role', { messages: [{ role: 'tool', content: 'a' }] }],
    ['another field', { messages, model: 'gpt-6.1-sol' }],
  ])('rejects chat input with %s', (_, input) => {
    expect(action.input.safeParse(input).success).toBe(false);
  });
});
