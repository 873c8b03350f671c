import { Runtime, type LogExporterConfig, type MetricsExporterConfig } from '@temporalio/worker';
import type { Logger } from 'pino';
import { temporalLogger } from './temporal-logger.js';

/** What the SDK's native side has to say goes to its logger, and not past it to the terminal. */
export const NATIVE_LOGGING: LogExporterConfig = {
  filter: { core: 'WARN', other: 'ERROR' },
  forward: {},
};

/**
 * Installs the Temporal SDK's one runtime of this process: what it logs goes into our log, and what
 * it measures is served to Prometheus. Where nothing can be served, the agents are looked after all
 * the same, and the log says why.
 *
 * @param metricsAddress address and port, as in `WORKER_METRICS_LISTEN`; nothing is served without.
 */
export function installRuntime(log: Logger, metricsAddress?: string): void {
  const install = (metrics?: MetricsExporterConfig) => {
    const telemetryOptions = { logging: NATIVE_LOGGING, ...(metrics && { metrics }) };
    Runtime.install({ logger: temporalLogger(log), shutdownSignals: [], telemetryOptions });
  };
  if (metricsAddress === undefined) {
    install();
    return;
  }
  try {
    install(metricsAt(metricsAddress));
  } catch (error) {
    log.warn({ err: error, address: metricsAddress }, "the worker's metrics are not served");
    install();
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
