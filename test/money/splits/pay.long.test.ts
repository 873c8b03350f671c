import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { generatePrivateKey, privateKeyToAddress } from 'viem/accounts';
import type { Hex } from 'viem';
import { Worker } from '@temporalio/worker';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { createSplitActivities } from '../../../activities/splits.js';
import { balanceOf } from '../../../src/money/ledger/ledger.js';
import { createPaymentServices } from '../../../src/payment-services.js';
import { createWorkerServices } from '../../../src/services.js';
import { loadPaymentSettings } from '../../../src/settings.js';
import {
  getSplit,
  RoyaltySplits,
  type NewSplit,
} from '../../../src/money/splits/royalty-splits.js';
import type { SplitPayments } from '../../../src/money/splits/split-payments.js';
import type { SplitStatus } from '../../../src/types/split-states.js';
import { royaltySplitRuns } from '../../../temporal/row-runs.js';
import { ChainSigners } from '../../../temporal/chain-signers.js';
import { payments, royaltySplits } from '../../../worker/handed-rows.js';
import { handOverPeriodically } from '../../../worker/hand-over.js';
import { createPaymentWorker } from '../../../worker/payment-worker.js';
import { runWorkers } from '../../../worker/run-together.js';
import { payRoyaltySplitId, PLATFORM_TASK_QUEUE } from '../../../workflows/ids.js';
import { paymentLab, type PaymentLab } from '../payments/support.js';
import { textsOfRows } from '../../platform/database/traces.js';
import { CHAIN_ID, PATH_USD } from '../../support/chain/chain.js';
import { keptKeysOf, secretsOfMoneyIn } from '../../support/chain/money-secrets.js';
import { textsOfHistories } from '../../support/histories.js';
import { keptLog, testEnvironment } from '../../support/platform-environment.js';
import { testTemporal, workflowCode, type TestTemporal } from '../../support/temporal.js';
import { SecretBox } from '../../../src/platform/secrets/secret-box.js';
import { gasBudget } from '../gas/support.js';
import { makePayer, ONE, splitOf, type Payer } from './support.js';

const { log, lines } = keptLog();
let lab: PaymentLab;
let temporal: TestTemporal;
let node: Node;
let settings: ReturnType<typeof loadPaymentSettings>;
let secrets: SecretBox;
let splits: RoyaltySplits;
let payer: Payer;
let operator: Hex;
let operatorKey: Hex;
let stop = () => Promise.resolve();

beforeAll(async () => {
  [lab, temporal] = await Promise.all([paymentLab(), testTemporal()]);
  node = await nodeBefore(lab.chain.rpcUrl);
  const privateKey = generatePrivateKey();
  operatorKey = privateKey;
  operator = privateKeyToAddress(privateKey);
  await lab.chain.pay(operator, 1_000n * ONE);
  settings = loadPaymentSettings(
    testEnvironment({
      DATABASE_URL: lab.database.url,
      INTERNAL_API_KEY: 'key',
      CHAIN_RPC_URL: node.url,
      CHAIN_CONFIRMATIONS: '1',
      USDC_CONFIRMATIONS: '1',
      USDC_ADDRESS: PATH_USD,
      OPERATOR_PRIVATE_KEY: privateKey,
    }),
  );
  secrets = new SecretBox(settings.secrets.keys);
  splits = new RoyaltySplits(settings.chain.usdc, gasBudget(lab.database.db));
  await startWorkers();
});
afterAll(async () => {
  await stop();
  await node?.close();
  await temporal?.close();
  await lab?.close();
});
beforeEach(async () => {
  payer = await makePayer(lab.database.db, secrets);
});

/** A proxy before a node that loses some responses. */
interface Node {
  readonly url: string;
  /** Number of next broadcasts that reach the chain but whose responses are lost. */
  unanswered: number;
  close(): Promise<void>;
}

async function nodeBefore(rpcUrl: string): Promise<Node> {
  const server = createServer((request, response) => {
    void (async () => {
      const body = (await request.toArray()).join('');
      const answer = await fetch(rpcUrl, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body,
      });
      const text = await answer.text();
      if (body.includes('eth_sendRawTransaction') && node.unanswered > 0) {
        node.unanswered--;
        request.socket.destroy();
        return;
      }
      response.setHeader('content-type', 'application/json').end(text);
    })().catch(() => request.socket.destroy());
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    unanswered: 0,
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

/**
 * Wraps steps so that each first call does its work and then fails, as if its worker was killed right
 * after it.
 */
function unanswered(steps: SplitPayments): Pick<SplitPayments, 'request' | 'settle' | 'finish'> {
  const answered = new Set<string>();
  const once = async <T>(step: string, work: () => Promise<T>): Promise<T> => {
    const answer = await work();
    if (answered.has(step)) return answer;
    answered.add(step);
    throw new Error('the result of this step is lost');
  };
  return {
    request: (id) => once(`request ${id}`, () => steps.request(id)),
    settle: (id, cause) => once(`settle ${cause}`, () => steps.settle(id, cause)),
    finish: (id) => once(`finish ${id}`, () => steps.finish(id)),
  };
}

/** Starts the workers that pay splits, as their processes run them. */
async function startWorkers(): Promise<void> {
  const { client, connection, namespace } = temporal;
  const database = lab.database.db;
  const worker = createWorkerServices({ settings, database, log });
  const services = createPaymentServices({ settings, database, log });
  const code = await workflowCode();
  const ending = new AbortController();
  const running = Promise.all([
    runWorkers(
      async () => [
        await Worker.create({
          connection,
          namespace,
          ...code,
          taskQueue: PLATFORM_TASK_QUEUE,
          activities: createSplitActivities(unanswered(worker.splits)),
        }),
        await createPaymentWorker({ connection, namespace, services }),
      ],
      ending.signal,
    ),
    handOverPeriodically(
      { database, log },
      payments(database, new ChainSigners(client)),
      ending.signal,
    ),
    handOverPeriodically({ database, log }, royaltySplits(royaltySplitRuns(client)), ending.signal),
  ]);
  stop = async () => {
    ending.abort();
    await running;
  };
}

const by = () => ({
  tenant: lab.database.db.asUser(payer.id),
  actor: payer.id,
  requestId: 'a-request',
  idempotencyId: randomUUID(),
});

async function create(wanted: NewSplit): Promise<string> {
  return (await splits.create(by(), wanted)).id;
}

const show = (id: string) => getSplit(lab.database.db.asUser(payer.id), id);

/** Milliseconds until a split ends: a run that is lost starts again after 20 s or later. */
const SPLIT_MS = 90_000;

/** Waits until a split has ended with any status. */
const ended = (id: string) =>
  expect.poll(async () => (await show(id)).split.completedAt, { timeout: SPLIT_MS }).not.toBeNull();

/** Waits until a split has ended with this status, and its run has ended too. */
async function ends(id: string, status: SplitStatus) {
  await ended(id);
  await temporal.client.workflow.getHandle(payRoyaltySplitId(id)).result();
  const found = await show(id);
  expect(found.split.status).toBe(status);
  return found;
}

/** Returns the balance of each recipient, in the order of the split. */
const received = ({ recipients }: NewSplit) =>
  Promise.all(recipients.map(({ address }) => lab.balanceOf(address)));

/** Expects the recipients to have their dealt amounts and the wallet to have paid nothing else. */
async function isPaidOnce(id: string, wanted: NewSplit, left: bigint): Promise<void> {
  const { payouts } = await show(id);
  expect(await received(wanted)).toEqual(payouts.map(({ amount }) => BigInt(amount)));
  expect(await lab.balanceOf(payer.wallet)).toBe(left);
  const debit = `wallet:${payer.wallet}` as const;
  const { balance } = await balanceOf(lab.database.db.asPlatform(), debit, `usdc:${CHAIN_ID}`);
  expect(balance).toBe(-wanted.totalAmount);
}

test('pays a whole wallet to a hundred recipients in one transaction, with the fee on the operator', async () => {
  const wanted = splitOf(payer, 100, 10n * ONE + 7n);
  await lab.chain.pay(payer.wallet, wanted.totalAmount);
  const before = await lab.balanceOf(operator);
  const id = await create(wanted);
  const { payouts, split } = await ends(id, 'completed');
  expect(new Set(payouts.map(({ status }) => status))).toEqual(new Set(['confirmed']));
  const hashes = [...new Set(payouts.map(({ transaction }) => transaction))];
  expect(hashes).toEqual([expect.stringMatching(/^0x[\da-f]{64}$/)]);
  expect(split.error).toBeNull();
  await isPaidOnce(id, wanted, 0n);
  expect(await lab.balanceOf(operator)).toBeLessThan(before);
});

test('fails a split that the wallet does not cover, and pays it on a retry once covered', async () => {
  const wanted = splitOf(payer, 3, ONE);
  await lab.chain.pay(payer.wallet, ONE - 1n);
  const id = await create(wanted);
  const { split } = await ends(id, 'failed');
  expect(split.error).toBe('The balance of the wallet is too low');
  expect(await received(wanted)).toEqual([0n, 0n, 0n]);
  await lab.chain.pay(payer.wallet, 1n);
  await splits.retry(by(), id);
  await ends(id, 'completed');
  await isPaidOnce(id, wanted, 0n);
});

test('pays once if the response to a broadcast is lost', async () => {
  const wanted = splitOf(payer, 3, ONE);
  await lab.chain.pay(payer.wallet, 2n * ONE);
  node.unanswered = 1;
  const id = await create(wanted);
  await ends(id, 'completed');
  expect(node.unanswered).toBe(0);
  await isPaidOnce(id, wanted, ONE);
});

test('pays everything once if the workers stop while a split is in flight', async () => {
  const wanted = splitOf(payer, 3, ONE);
  await lab.chain.pay(payer.wallet, 2n * ONE);
  await lab.rpc('evm_setAutomine', false);
  const id = await create(wanted);
  const statuses = async () => (await show(id)).payouts.map(({ status }) => status);
  await expect.poll(statuses).toEqual(['sent', 'sent', 'sent']);
  await stop();
  // Its workflow run is lost as well.
  await temporal.client.workflow.getHandle(payRoyaltySplitId(id)).terminate();
  await lab.database.db.asPlatform().query('UPDATE royalty_splits SET due_at = now()');
  await lab.rpc('evm_setAutomine', true);
  await startWorkers();
  await ends(id, 'completed');
  await isPaidOnce(id, wanted, ONE);
});

test('pays two splits of one wallet one after another, the second only if it is covered', async () => {
  const [first, second] = [splitOf(payer, 2, ONE), splitOf(payer, 2, ONE)];
  await lab.chain.pay(payer.wallet, ONE);
  const ids = [await create(first), await create(second)];
  await Promise.all(ids.map(ended));
  const statuses = await Promise.all(ids.map(async (id) => (await show(id)).split.status));
  expect(statuses.sort()).toEqual(['completed', 'failed']);
  expect(await lab.balanceOf(payer.wallet)).toBe(0n);
  const all = [...(await received(first)), ...(await received(second))];
  expect(all.reduce((sum, amount) => sum + amount)).toBe(ONE);
});

test(
  'writes no key to histories, logs or rows, and no name to histories or logs',
  { tags: 'attack' },
  async () => {
    const { texts } = await textsOfHistories(temporal.client);
    const platform = lab.database.db.asPlatform();
    const keys = [operatorKey, ...(await keptKeysOf(platform, secrets))];
    expect(keys.length).toBeGreaterThan(1);
    const rows = await textsOfRows(platform);
    expect(secretsOfMoneyIn([...texts, ...lines, ...rows], keys)).toEqual([]);
    const kept = [...texts, ...lines].join('\n');
    expect(kept).toContain('requestSplitPayments');
    const [row] = await lab.database.db
      .asPlatform()
      .query<{ sealedKey: string }>('SELECT sealed_key AS "sealedKey" FROM wallets LIMIT 1');
    for (const secret of [row?.sealedKey, payer.email, 'a song']) {
      expect(kept).not.toContain(secret);
    }
  },
);
