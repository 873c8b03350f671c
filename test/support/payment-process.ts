import type { Hex } from 'viem';
import { createPaymentServices } from '../../src/payment-services.js';
import { loadPaymentSettings } from '../../src/settings.js';
import { createPaymentWorker } from '../../worker/payment-worker.js';
import { runWorkers } from '../../worker/run-together.js';
import { testEnvironment } from './platform-environment.js';
import type { TestPlatform } from './platform.js';

/** Runs the worker of payments, which alone has the operator's key. @returns a function that stops the worker. */
export function startPayments(
  { db, log, temporal }: Pick<TestPlatform, 'db' | 'log' | 'temporal'>,
  operatorKey: Hex,
): () => Promise<void> {
  const settings = loadPaymentSettings(
    testEnvironment({
      DATABASE_URL: 'postgres://unused',
      INTERNAL_API_KEY: 'key',
      OPERATOR_PRIVATE_KEY: operatorKey,
    }),
  );
  const services = createPaymentServices({ settings, database: db, log });
  const { connection, namespace } = temporal;
  const ending = new AbortController();
  const running = runWorkers(
    async () => [await createPaymentWorker({ connection, namespace, services })],
    ending.signal,
  );
  return async () => {
    ending.abort();
    await running;
  };
}
