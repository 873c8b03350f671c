// @module-tag attack
import { randomUUID } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { pino } from 'pino';
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { createWeb } from '../../../api/web/web.js';
import { WalletNonces } from '../../../src/accounts/accounts/wallet-nonces.js';
import { WalletProofs } from '../../../src/accounts/accounts/wallet-proofs.js';
import { TokenGate } from '../../../src/accounts/token-gating/token-gate.js';
import { Bus } from '../../../src/bus/bus.js';
import { chainTransfers } from '../../../src/gateway/chain-transfers.js';
import { ChainAwayError, ChainNode, type NodeCaller } from '../../../src/money/chain/chain-node.js';
import { Usdc } from '../../../src/money/chain/usdc.js';
import { Escrow } from '../../../src/money/sessions/escrow.js';
import { PaymentSessions } from '../../../src/money/sessions/payment-sessions.js';
import { AgentWallets } from '../../../src/money/wallets/agent-wallets.js';
import { makeAccount } from '../../support/account.js';
import { CHAIN_ID, PATH_USD } from '../../support/chain/chain.js';
import { siweMessage, WEB_URL } from '../../support/chain/siwe.js';
import { databaseAlone } from '../../support/dependencies.js';
import { testDatabase, type TestDatabase } from '../../support/postgres.js';
import { testSecrets } from '../../support/secrets.js';
import { gasBudget } from '../gas/support.js';

/** Requests of one owner that a node serves at a time. */
const OF_ONE_OWNER = 20;

const TREASURY = `0x${'7e'.repeat(20)}` as const;
const secrets = testSecrets();

let database: TestDatabase;
let server: Server;
let url: string;
/** Requests that the node has received and does not answer. */
let hanging = 0;
let isHanging = true;

beforeAll(async () => {
  database = await testDatabase();
});
afterAll(() => database?.close());

beforeEach(async () => {
  [hanging, isHanging] = [0, true];
  server = createServer((request, response) => {
    void text(request).then((body) => {
      const { method } = JSON.parse(body) as { method: string };
      const isCall = method !== 'eth_chainId';
      if (isCall && isHanging) return hanging++;
      const result = isCall ? `0x${'0'.repeat(63)}6` : `0x${CHAIN_ID.toString(16)}`;
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify({ jsonrpc: '2.0', id: 1, result }));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`; // TCP: always an object
});
afterEach(() => {
  server.closeAllConnections();
  server.close();
});

const newAddress = () =>
  privateKeyToAccount(generatePrivateKey()).address.toLowerCase() as `0x${string}`;

const node = () => new ChainNode({ chainId: CHAIN_ID, url });

type Ask = (owner: string) => Promise<unknown>;

/** Everything that reads the chain while a request waits, by name. */
const ASKING: readonly (readonly [string, () => Ask])[] = [
  [
    'balances of the platform token',
    () => {
      const gate = new TokenGate({
        platformToken: { address: PATH_USD, rpcUrl: url, chainId: CHAIN_ID, threshold: '1' },
      });
      let decimals: Promise<unknown> | undefined;
      return async (owner) => {
        // All owners share the token's decimals, which are the platform's request.
        isHanging = false;
        await (decimals ??= gate.holdingsOf([newAddress()], 'first'));
        isHanging = true;
        return gate.holdingsOf([newAddress()], owner);
      };
    },
  ],
  [
    'balances of USDC',
    () => {
      const usdc = new Usdc({
        usdc: {
          address: PATH_USD,
          chainId: CHAIN_ID,
          rpcUrl: url,
          confirmations: 1,
          feeLimits: { unit: 1n, transaction: 1n },
        },
      });
      return (owner) => usdc.balanceOf(newAddress(), owner);
    },
  ],
  [
    'signatures of wallets that sign in',
    () => {
      const nonces = new WalletNonces(database.db, secrets);
      const parts = { nonces, chain: node(), chainIds: [CHAIN_ID], webUrl: WEB_URL };
      const proofs = new WalletProofs(parts);
      return (owner) => {
        const { address } = privateKeyToAccount(generatePrivateKey());
        const message = siweMessage({ address, nonce: nonces.issue().nonce });
        return proofs.verify({ address, message, signature: '0x00' }, owner);
      };
    },
  ],
  [
    'transfers that the gateway sells',
    () => {
      const action = chainTransfers(node());
      return async (buyer) => {
        const { signal } = new AbortController();
        const hash = `0x${'1'.repeat(64)}`;
        return action.run({ hash }, { id: 'debit', buyer, idempotencyKey: 'key', signal });
      };
    },
  ],
  [
    'openings of payment sessions',
    () => {
      const chain = node();
      const terms = { escrow: TREASURY, operator: TREASURY, treasury: TREASURY, holdSeconds: 1n };
      const sessions = new PaymentSessions({
        database: database.db,
        secrets,
        node: chain,
        escrow: new Escrow(chain, terms),
        payments: { request: () => Promise.reject(new Error('the test requests no payment')) },
        gas: gasBudget(database.db),
        watch: { left: () => Promise.resolve(undefined) },
        log: pino({ level: 'silent' }),
      });
      return (owner) => {
        const deadline = BigInt(Math.floor(Date.now() / 1_000) + 60);
        const authorization = {
          nonce: `0x${'1'.repeat(64)}`,
          deadline,
          signature: '0x00',
        } as const;
        const wanted = { address: newAddress(), deposit: 1n, authorization };
        const by = { userId: undefined, requestId: 'r', owner, client: '192.0.2.1' };
        return sessions.open(by, wanted, new AbortController().signal);
      };
    },
  ],
];

test.each(ASKING)('serves other owners while one owner waits for %s', async (_, make) => {
  const ask = make();
  let timedOut = 0;
  for (let n = 0; n < OF_ONE_OWNER + 5; n++) ask('greedy').catch(() => timedOut++);
  await expect.poll(() => hanging).toBe(OF_ONE_OWNER);
  const other = ask('other');
  other.catch(() => undefined);
  await expect.poll(() => hanging).toBeGreaterThan(OF_ONE_OWNER);
  // A request that ends makes room in any case.
  expect(timedOut).toBe(0);
  server.closeAllConnections();
  await expect(other).rejects.toThrow(ChainAwayError);
});

test.each(['/api/wallet', '/api/auth/token-gating/verify'])(
  'GET %s leaves room for others while the chain keeps one client waiting',
  async (path) => {
    const alone = await databaseAlone(database, undefined, {
      CHAIN_RPC_URL: url,
      PLATFORM_TOKEN_ADDRESS: PATH_USD,
      TRUSTED_PROXIES: '127.0.0.1',
    });
    const web = await createWeb(alone.dependencies).listen('127.0.0.1', 0);
    try {
      const get = async (client: string) => {
        const headers = { 'x-forwarded-for': client };
        return (await fetch(`${web.url}${path}?address=${newAddress()}`, { headers })).status;
      };
      // All clients share the token's decimals, so that request counts as the platform's own.
      isHanging = false;
      await get('192.0.2.1');
      isHanging = true;
      const greedy = Array.from({ length: OF_ONE_OWNER + 5 }, () => get('198.51.100.1'));
      await expect.poll(() => hanging).toBe(OF_ONE_OWNER);
      const other = get('203.0.113.1');
      await expect.poll(() => hanging).toBeGreaterThan(OF_ONE_OWNER);
      isHanging = false;
      server.closeAllConnections();
      await Promise.all([...greedy, other]);
    } finally {
      await web.close();
      await alone.close();
    }
  },
);

/** Returns a chain that is away, and the callers that it was named. */
function chainAway() {
  const callers: NodeCaller[] = [];
  const chain = {
    chainId: CHAIN_ID,
    onBehalfOf(caller: NodeCaller) {
      callers.push(caller);
      return new ChainNode({ chainId: CHAIN_ID, url: undefined });
    },
  };
  return { callers, chain };
}

async function newAgent() {
  const [agentId, { id: userId }] = [randomUUID(), await makeAccount(database.db)];
  const tenant = database.db.asUser(userId);
  const names = { id: agentId, userId, name: 'a', subdomain: agentId, host: 'local' };
  const kind = { plan: 'solo', model: 'm', aiProvider: 'openai' } as const;
  await tenant.transaction((db) => db.Agent.create({ ...names, ...kind }));
  return { agentId, tenant, userId };
}

test("names the client, not the sender's owner, to the chain that checks a message of the bus", async () => {
  const { callers, chain } = chainAway();
  const { agentId, tenant, userId } = await newAgent();
  const wallet = { id: randomUUID(), userId, agentId, kind: 'agent', isContract: true } as const;
  await tenant.transaction((db) =>
    db.Wallet.create({ ...wallet, address: newAddress(), sealedKey: null }),
  );
  const accept = () => Promise.reject(new Error('the test accepts no message'));
  const rules = { adminEmails: [], firstIsAdmin: false };
  const bus = new Bus({ database: database.db, chain, acceptance: { accept }, accounts: rules });
  const message = {
    ...{ messageId: randomUUID(), action: 'BOOKING_REQUEST', from: agentId, to: agentId },
    ...{ payload: {}, timestamp: Math.floor(Date.now() / 1_000) },
  };
  const sent = bus.send(message, `0x${'00'.repeat(100)}`, '192.0.2.1');
  await expect(sent).rejects.toThrow(ChainAwayError);
  expect(callers).toEqual([{ owner: '192.0.2.1', isUrgent: true }]);
});

test("names an agent's owner to the chain that checks its wallet", async () => {
  const { callers, chain } = chainAway();
  const wallets = new AgentWallets({ secrets, chain });
  const { agentId, tenant, userId } = await newAgent();
  const by = { tenant, actor: userId, requestId: 'r', idempotencyId: 'i' };
  const brought = { address: newAddress(), signature: '0x00' } as const;
  const provided = wallets.provide(by, { userId, agentId }, brought);
  await expect(provided).rejects.toThrow(ChainAwayError);
  expect(callers).toEqual([{ owner: userId, isUrgent: true }]);
});
