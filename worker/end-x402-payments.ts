import type { Logger } from 'pino';
import { endUnanswered } from '../src/gateway/x402-payments.js';
import type { Database } from '../src/platform/database/database.js';
import { periodically } from '../src/platform/process/periodically.js';

const INTERVAL_MS = 15_000;

interface EndDependencies {
  readonly database: Database;
  readonly log: Logger;
}

/** Ends payments by the x402 gateway that have no outcome, until the signal aborts. */
export function endX402PaymentsPeriodically(
  { database, log }: EndDependencies,
  signal: AbortSignal,
): Promise<void> {
  const failure = 'payments by the x402 gateway could not be ended, retrying';
  const work = async () => {
    const ended = await endUnanswered(database.asPlatform());
    if (ended > 0) log.warn({ ended }, 'payments by the x402 gateway have no outcome');
  };
  return periodically({ everyMs: INTERVAL_MS, failure, log, work }, signal);
}
