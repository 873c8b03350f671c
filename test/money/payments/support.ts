import { randomUUID } from 'node:crypto';
import { encodeFunctionData, erc20Abi, type Hex } from 'viem';
import { generatePrivateKey, privateKeyToAccount, privateKeyToAddress } from 'viem/accounts';
import { ChainNode } from '../../../src/money/chain/chain-node.js';
import { feeLimitsOf } from '../../../src/money/chain/fee-limits.js';
import type { NotifiedEvent } from '../../../src/types/notification.js';
import { ChainPayments, type PaymentRequest } from '../../../src/money/payments/chain-payments.js';
import type { PaymentChain } from '../../../src/money/payments/chains.js';
import { Signer, type SignerParts } from '../../../src/money/payments/signer.js';
import { SigningKeys } from '../../../src/money/payments/signing-keys.js';
import { CHAIN_ID, PATH_USD, testChain, type TestChain } from '../../support/chain/chain.js';
import { keptLog } from '../../support/platform-environment.js';
import { testDatabase, type TestDatabase } from '../../support/postgres.js';

/** 1 pathUSD in base units. */
export const ONE = 1_000_000n;

/** Returns a new address. */
export const newAddress = (): Hex => privateKeyToAddress(generatePrivateKey()).toLowerCase() as Hex;

/** Returns the call that sends this many base units of pathUSD. */
export const transfer = (to: Hex, amount: bigint) => ({
  to: PATH_USD,
  data: encodeFunctionData({ abi: erc20Abi, functionName: 'transfer', args: [to, amount] }),
  value: 0n,
});

/** A payer with money. */
export interface Payer {
  readonly address: Hex;
  readonly privateKey: Hex;
  /** Parts from which `signer` is built. */
  readonly parts: SignerParts;
  readonly signer: Signer;
  /** Requests a payment of 1 pathUSD to a new address, unless `request` overrides that. */
  ask(request?: Partial<PaymentRequest>): Promise<{ readonly cause: string; readonly to: Hex }>;
}

/** A database and a chain for payments. */
export interface PaymentLab {
  readonly database: TestDatabase;
  readonly chain: TestChain;
  readonly payments: ChainPayments;
  /** Log lines so far, each a JSON object. */
  readonly logged: readonly string[];
  /** Lists the pending operator notifications that contain this name. */
  notifiedOf(name: string): Promise<readonly NotifiedEvent[]>;
  /** Calls a JSON-RPC method of the chain's node. */
  rpc(method: string, ...params: unknown[]): Promise<unknown>;
  /** Creates a payer with 100 pathUSD. */
  payer(chain?: Partial<PaymentChain>): Promise<Payer>;
  /** Returns the booked fee of a transaction in base units; undefined if none is booked. */
  feeOf(hash: string): Promise<bigint | undefined>;
  /** Returns the pathUSD balance of an address in base units. */
  balanceOf(address: Hex): Promise<bigint>;
  close(): Promise<void>;
}

/** Key lookup without any stored wallet. */
export const NO_KEYS = () => Promise.resolve(undefined);

export async function paymentLab(): Promise<PaymentLab> {
  const [database, chain] = await Promise.all([testDatabase(), testChain()]);
  const payments = new ChainPayments(database.db);
  const { log, lines: logged } = keptLog();
  const node = new ChainNode({ chainId: CHAIN_ID, url: chain.rpcUrl });
  return {
    database,
    chain,
    payments,
    logged,
    async notifiedOf(name) {
      const rows = await database.db
        .asPlatform()
        .query<{ event: NotifiedEvent }>('SELECT event FROM pending_notifications ORDER BY due_at');
      return rows.map(({ event }) => event).filter((event) => JSON.stringify(event).includes(name));
    },
    async rpc(method, ...params) {
      const answer = await fetch(chain.rpcUrl, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
        signal: AbortSignal.timeout(30_000),
      });
      const { error, result } = (await answer.json()) as { error?: unknown; result?: unknown };
      if (error !== undefined) throw new Error(`${method}: ${JSON.stringify(error)}`);
      return result;
    },
    async payer(over = {}) {
      const privateKey = generatePrivateKey();
      const address = privateKeyToAccount(privateKey).address.toLowerCase() as Hex;
      await chain.pay(address, 100n * ONE);
      const usual = {
        chainId: CHAIN_ID,
        node,
        confirmations: 1,
        feeBumpAfterMs: 3_600_000,
        feeLimits: feeLimitsOf(CHAIN_ID),
      };
      const keys = new SigningKeys({ address, privateKey }, NO_KEYS);
      const parts = {
        database: database.db,
        chain: { ...usual, ...over },
        keys,
        log,
        gaps: new Set<string>(),
      };
      return {
        address,
        privateKey,
        parts,
        signer: new Signer(parts, address),
        async ask(request = {}) {
          const to = newAddress();
          const cause = `test:${randomUUID()}`;
          const calls = [transfer(to, ONE)];
          await database.db.asPlatform().transaction((db) =>
            payments.request(db, {
              cause,
              chainId: CHAIN_ID,
              signer: address,
              calls,
              ...request,
            }),
          );
          return { cause, to };
        },
      };
    },
    async feeOf(hash) {
      const [booked] = await database.db.asPlatform().query<{ amount: string }>(
        `SELECT amount FROM ledger_transfers
          WHERE cause = $cause AND (debit, credit, currency) = ('fees', 'external', 'pathusd')`,
        { cause: `fee:${hash}` },
      );
      return booked && BigInt(booked.amount);
    },
    balanceOf: (address) => node.tokenBalance(PATH_USD, address),
    async close() {
      await chain.close();
      await database.close();
    },
  };
}
