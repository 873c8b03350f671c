import { randomUUID } from 'node:crypto';
import { encodeFunctionData, erc20Abi, type Hex } from 'viem';
import { generatePrivateKey, privateKeyToAccount, privateKeyToAddress } from 'viem/accounts';
import { ChainNode } from '../../../src/money/chain/chain-node.js';
import type { NotifiedEvent } from '../../../src/types/notification.js';
import { ChainPayments, type PaymentRequest } from '../../../src/money/payments/chain-payments.js';
import type { PaymentChain } from '../../../src/money/payments/chains.js';
import { Signer, type SignerParts } from '../../../src/money/payments/signer.js';
import { SigningKeys } from '../../../src/money/payments/signing-keys.js';
import { CHAIN_ID, PATH_USD, testChain, type TestChain } from '../../support/chain/chain.js';
import { keptLog } from '../../support/platform-environment.js';
import { testDatabase, type TestDatabase } from '../../support/postgres.js';

/** One whole pathUSD in base units. */
export const ONE = 1_000_000n;

/** An address that nobody has had before. */
export const newAddress = (): Hex => privateKeyToAddress(generatePrivateKey()).toLowerCase() as Hex;

/** The call that sends so many base units of pathUSD. */
export const transfer = (to: Hex, amount: bigint) => ({
  to: PATH_USD,
  data: encodeFunctionData({ abi: erc20Abi, functionName: 'transfer', args: [to, amount] }),
  value: 0n,
});

/** Somebody who pays, with money. */
export interface Payer {
  readonly address: Hex;
  readonly privateKey: Hex;
  /** Of `signer`. */
  readonly parts: SignerParts;
  readonly signer: Signer;
  /** Asks for a payment of one pathUSD to somebody new, or for what else is said. */
  ask(request?: Partial<PaymentRequest>): Promise<{ readonly cause: string; readonly to: Hex }>;
}

/** A database and a chain on which payments are made. */
export interface PaymentLab {
  readonly database: TestDatabase;
  readonly chain: TestChain;
  readonly payments: ChainPayments;
  /** What has been logged, a JSON object a line. */
  readonly logged: readonly string[];
  /** What operators are to be told of what names this. */
  toldOf(name: string): Promise<readonly NotifiedEvent[]>;
  /** Asks the chain's program. */
  rpc(method: string, ...params: unknown[]): Promise<unknown>;
  /** Somebody new with 100 pathUSD. */
  payer(chain?: Partial<PaymentChain>): Promise<Payer>;
  /** What the ledger has of a transaction's fee, in base units; undefined where nothing is booked. */
  feeOf(hash: string): Promise<bigint | undefined>;
  /** The pathUSD of an address in base units. */
  balanceOf(address: Hex): Promise<bigint>;
  close(): Promise<void>;
}

/** Where no wallet is kept. */
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
    async toldOf(name) {
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
      const usual = { chainId: CHAIN_ID, node, confirmations: 1, feeBumpAfterMs: 3_600_000 };
      const keys = new SigningKeys({ address, privateKey }, NO_KEYS);
      const parts = {
        ...{ database: database.db, chain: { ...usual, ...over }, keys, log },
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
