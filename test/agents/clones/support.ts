import { randomBytes, randomUUID } from 'node:crypto';
import { encodeFunctionData, erc20Abi, type Hex } from 'viem';
import type { LocalAccount } from 'viem/accounts';
import { createBackend } from '../../../api/backend/backend.js';
import { BackendClient } from '../../../api/web/backend-client.js';
import { createWeb } from '../../../api/web/web.js';
import type { Plan } from '../../../src/types/plans.js';
import { WALLET_ISSUER } from '../../../src/types/sign-in-methods.js';
import { grantPlan } from '../../../src/accounts/accounts/subscriptions.js';
import { createAgent } from '../../../src/agents/lifecycle/create-agent.js';
import { ChainNode } from '../../../src/money/chain/chain-node.js';
import { PATH_USD } from '../../../src/money/chain/tempo.js';
import { ClonePayments } from '../../../src/agents/clones/clone-payments.js';
import { CloneStore } from '../../../src/agents/clones/clone-store.js';
import { Clones } from '../../../src/agents/clones/clones.js';
import type { CloneSettings } from '../../../src/agents/clones/settings.js';
import { reportHost } from '../../../src/agents/hosts/hosts.js';
import { queryRows } from '../../platform/database/catalog.js';
import { makeAccount, signIn, type TestAccount } from '../../support/account.js';
import { CHAIN_ID, testChain } from '../../support/chain/chain.js';
import { databaseAlone } from '../../support/dependencies.js';
import { call, type CallOptions } from '../../support/http.js';
import { testDatabase } from '../../support/postgres.js';

/** The payment recipient on the test chains. */
export const TREASURY: Hex = '0x7ea5000000000000000000000000000000000001';

/** The account that replaces the escrow contract, by its index on the test chain. */
export const ESCROW = 8;

/** Blocks until a payment is final. */
export const CONFIRMATIONS = 3;

/** One whole token in base units. */
export const WHOLE = 1_000_000n;

export const transfer = (to: Hex, amount: bigint, token: Hex = PATH_USD) => ({
  to: token,
  data: encodeFunctionData({ abi: erc20Abi, functionName: 'transfer', args: [to, amount] }),
});

/** Starts both listeners with a database and a chain, without Docker: the host is only a row. */
export async function cloneDesk() {
  const database = await testDatabase();
  const chain = await testChain();
  const internalKey = randomBytes(16).toString('hex');
  const { dependencies, close } = await databaseAlone(database, undefined, {
    INTERNAL_API_KEY: internalKey,
    CHAIN_RPC_URL: chain.rpcUrl,
    CHAIN_CONFIRMATIONS: String(CONFIRMATIONS),
    TREASURY_ADDRESS: TREASURY,
    ESCROW_ADDRESS: chain.account(ESCROW).address,
  });
  const { secrets, settings } = dependencies;
  const { db } = database;
  const present = { id: 'local', capacity: 1_000, ports: { first: 19_100, last: 19_999 } };
  await reportHost(db, { ...present, engineAvailable: true });
  // Keeps the host alive for the whole test, because no worker reports it again.
  await queryRows(database.ownerUrl, `UPDATE hosts SET seen_at = now() + interval '1 day'`);

  const nodeAt = (url: string | undefined) => new ChainNode({ chainId: CHAIN_ID, url });
  const deskOf = async (payerProof: CloneSettings['payerProof'], url?: string) => {
    const clones = new Clones({
      database: db,
      secrets,
      enabled: true,
      accounts: settings.accounts,
      models: dependencies.ai.models,
      engines: { unavailableLocalHost: () => Promise.resolve(undefined) },
      node: nodeAt(url),
      chain: settings.chain,
      settings: { payerProof },
    });
    const backend = await createBackend({ ...dependencies, clones }).listen('127.0.0.1', 0);
    const client = new BackendClient(backend.url, internalKey);
    const web = await createWeb({ ...dependencies, clones, backend: client }).listen(
      '127.0.0.1',
      0,
    );
    return { backend, web };
  };
  const [usual, strict, blind] = await Promise.all([
    deskOf('linked', chain.rpcUrl),
    deskOf('required', chain.rpcUrl),
    deskOf('linked', 'http://127.0.0.1:1'),
  ]);
  const backendOf =
    ({ backend }: typeof usual) =>
    (user: Pick<TestAccount, 'id'> | undefined, body: unknown, options: CallOptions = {}) =>
      call(backend.url, 'POST', '/api/agents/clone', {
        ...options,
        body,
        headers: {
          authorization: `Bearer ${internalKey}`,
          ...(user && { 'x-user-id': user.id }),
          ...options.headers,
        },
      });

  const block = async (hash: Hex) => {
    const node = nodeAt(chain.rpcUrl);
    const receipt = await node.receipt(hash);
    const found = receipt && (await node.block(receipt.blockNumber));
    if (!found) throw new Error(`${hash} is in no block`);
    return found;
  };

  return {
    database,
    chain,
    treasury: TREASURY,
    payments: new ClonePayments({
      store: new CloneStore(db),
      node: nodeAt(chain.rpcUrl),
      chain: settings.chain,
    }),
    store: new CloneStore(db),
    urls: { backend: usual.backend.url, web: usual.web.url, blind: blind.backend.url },
    /** Sends another backend request for a user. */
    ask: ({ id }: Pick<TestAccount, 'id'>, method: string, path: string) =>
      call(usual.backend.url, method, path, {
        headers: { authorization: `Bearer ${internalKey}`, 'x-user-id': id },
      }),
    /** Requests a clone on the backend, for a user or as the operator. */
    clone: backendOf(usual),
    /** Requests a clone where a wallet that is not linked must sign. */
    cloneStrictly: backendOf(strict),
    /** Requests a clone while the chain is unavailable. */
    cloneBlindly: backendOf(blind),

    async user(plan: Plan = 'network') {
      const account = await makeAccount(db);
      await grantPlan(db, account.id, plan, { actor: 'test', requestId: 'test' });
      return { ...account, cookie: await signIn(db, account) };
    },

    /** Creates an agent that has run. */
    async parentOf({ id: userId }: Pick<TestAccount, 'id'>) {
      const tenant = db.asUser(userId);
      const { agent } = await createAgent(tenant, secrets, {
        id: randomUUID(),
        userId,
        name: `parent ${randomUUID()}`,
        plan: 'network',
        model: 'claude-opus-4-6',
        aiProvider: 'openai',
        config: { skills: [], note: 'kept' },
        limit: () => Promise.resolve(100),
        requestId: 'test',
      });
      await tenant.transaction(async (tx) => {
        await tx.Agent.update(
          { status: 'active', startedAt: new Date(), verified: true, image: 'image-of-parent' },
          { where: { id: agent.id } },
        );
      });
      return agent;
    },

    async link({ id: userId }: Pick<TestAccount, 'id'>, { address }: LocalAccount) {
      const subject = address.toLowerCase();
      await db.asUser(userId).transaction((tx) =>
        tx.Identity.create({
          id: randomUUID(),
          userId,
          kind: 'wallet',
          issuer: WALLET_ISSUER,
          subject,
          label: subject,
        }),
      );
    },

    /** Pays the treasury from the first account and returns the payment proof. */
    async pay(amount = WHOLE, given: Readonly<Record<string, unknown>> = {}) {
      const hash = await chain.pay(TREASURY, amount);
      return {
        ...proofOf(chain.account(0).address, hash, (await block(hash)).timestamp),
        ...given,
      };
    },

    /** Returns an account's payment proof for its own transaction. */
    async proof(of: LocalAccount, hash: Hex) {
      return proofOf(of.address, hash, (await block(hash)).timestamp);
    },

    mine: (blocks: number) => rpc(chain.rpcUrl, 'anvil_mine', [`0x${blocks.toString(16)}`]),
    rpc: (method: string, params: readonly unknown[]) => rpc(chain.rpcUrl, method, params),

    async close() {
      for (const { backend, web } of [usual, strict, blind]) {
        await backend.close();
        await web.close();
      }
      await close();
      await chain.close();
      await database.close();
    },
  };
}

export type CloneDesk = Awaited<ReturnType<typeof cloneDesk>>;

const proofOf = (from: string, transactionHash: string, timestamp: number) => ({
  transactionHash,
  amount: '1.0',
  currency: 'pathUSD',
  chainId: CHAIN_ID,
  from,
  to: TREASURY,
  timestamp,
});

async function rpc(url: string, method: string, params: readonly unknown[]): Promise<unknown> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
    signal: AbortSignal.timeout(30_000),
  });
  const answer: unknown = await response.json();
  if (typeof answer === 'object' && answer !== null && 'result' in answer) return answer.result;
  throw new Error(`${method}: ${JSON.stringify(answer)}`);
}
