import { Worker } from '@temporalio/worker';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { PaymentWatch } from '../../../src/money/payments/payment-watch.js';
import { Signers } from '../../../src/money/payments/signers.js';
import { ChainSigners } from '../../../temporal/chain-signers.js';
import { handOverPeriodically } from '../../../worker/hand-over.js';
import { payments } from '../../../worker/handed-rows.js';
import { createPaymentWorker } from '../../../worker/payment-worker.js';
import { runWorkers } from '../../../worker/run-together.js';
import { PLATFORM_TASK_QUEUE } from '../../../workflows/ids.js';
import { textsOfHistories } from '../../support/histories.js';
import { keptLog } from '../../support/platform-environment.js';
import { testTemporal, workflowCode, type TestTemporal } from '../../support/temporal.js';
import { ONE, paymentLab, type Payer, type PaymentLab } from './support.js';

const { log } = keptLog();
let lab: PaymentLab;
let temporal: TestTemporal;
let payer: Payer;
let stop = () => Promise.resolve();

beforeAll(async () => {
  [lab, temporal] = await Promise.all([paymentLab(), testTemporal()]);
  payer = await lab.payer();
  await startWorkers();
});
afterAll(async () => {
  await stop();
  await temporal?.close();
  await lab?.close();
});

/** Starts the payment workers as their processes run them. */
async function startWorkers(): Promise<void> {
  const { client, connection, namespace } = temporal;
  const database = lab.database.db;
  const changes = database.changesOf('payments');
  const services = {
    changes,
    signers: new Signers({ ...payer.parts, chains: [payer.parts.chain] }),
    watch: new PaymentWatch(lab.payments, changes),
    attester: { sign: () => Promise.resolve(false) },
  };
  const runs = { connection, namespace, taskQueue: PLATFORM_TASK_QUEUE, ...(await workflowCode()) };
  const ending = new AbortController();
  const running = Promise.all([
    runWorkers(
      async () => [
        await Worker.create(runs),
        await createPaymentWorker({ connection, namespace, services }),
      ],
      ending.signal,
    ),
    handOverPeriodically(
      { database, log },
      payments(database, new ChainSigners(client)),
      ending.signal,
    ),
  ]);
  stop = async () => {
    ending.abort();
    await running;
  };
}

const stateOf = async (cause: string) => (await lab.payments.stateOf(cause))?.state;

test('pays a requested payment without a notification', async () => {
  const { cause, to } = await payer.ask();
  await expect.poll(() => stateOf(cause)).toBe('confirmed');
  expect(await lab.balanceOf(to)).toBe(ONE);
});

test('pays a payment requested during another one in the same run or the next', async () => {
  for (let n = 0; n < 3; n++) {
    const { cause } = await payer.ask();
    await expect.poll(() => stateOf(cause)).toBe('confirmed');
  }
});

test('pays everything once if the workers stop in between', async () => {
  await lab.rpc('evm_setAutomine', false);
  const { cause, to } = await payer.ask();
  await expect.poll(() => stateOf(cause)).toBe('broadcast');
  await stop();
  await lab.rpc('evm_setAutomine', true);
  await startWorkers();
  await expect.poll(() => stateOf(cause)).toBe('confirmed');
  expect(await lab.balanceOf(to)).toBe(ONE);
});

test('writes no key to histories or logs', { tags: 'attack' }, async () => {
  const kept = async () =>
    [...(await textsOfHistories(temporal.client)).texts, ...lab.logged].join('\n');
  await expect.poll(kept).toContain('payAll');
  expect(await kept()).not.toContain(payer.privateKey.slice(2));
});
