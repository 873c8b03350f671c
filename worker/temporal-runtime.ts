import { Runtime, type RuntimeOptions } from '@temporalio/worker';
import type { Logger } from 'pino';
import { temporalLogger } from './temporal-logger.js';

/**
 * Installs the Temporal SDK's one runtime of this process: what it logs goes into our log, and what
 * it measures is served to Prometheus. Where nothing can be served, the agents are looked after all
 * the same, and the log says why.
 *
 * @param metricsAddress address and port, as in `WORKER_METRICS_LISTEN`.
 */
export function installRuntime(log: Logger, metricsAddress: string): void {
  const options: RuntimeOptions = { logger: temporalLogger(log), shutdownSignals: [] };
  try {
    Runtime.install({ ...options, telemetryOptions: { metrics: metricsAt(metricsAddress) } });
  } catch (error) {
    log.warn({ err: error, address: metricsAddress }, "the worker's metrics are not served");
    Runtime.install(options);
  }
}

/** Named as Prometheus has it: seconds, and `_total` for what only grows. */
const metricsAt = (bindAddress: string) => ({
  prometheus: {
    bindAddress,
    countersTotalSuffix: true,
    unitSuffix: true,
    useSecondsForDurations: true,
  },
});
