import { Runtime, type LogExporterConfig, type MetricsExporterConfig } from '@temporalio/worker';
import type { Logger } from 'pino';
import { temporalLogger } from './temporal-logger.js';

/** Routes native SDK logs to the SDK's logger instead of the terminal. */
export const NATIVE_LOGGING: LogExporterConfig = {
  filter: { core: 'WARN', other: 'ERROR' },
  forward: {},
};

/**
 * Installs the process's only Temporal SDK runtime, with metrics at an address and port, as in
 * `WORKER_METRICS_LISTEN`. If they cannot be served, the worker logs why and continues.
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
    log.warn({ err: error, address: metricsAddress }, 'worker metrics cannot be served');
    install();
  }
}

/** Naming rules of Prometheus: seconds as unit, and `_total` for counters. */
const metricsAt = (bindAddress: string) => ({
  prometheus: {
    bindAddress,
    countersTotalSuffix: true,
    unitSuffix: true,
    useSecondsForDurations: true,
  },
});
