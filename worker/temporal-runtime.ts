import { once } from 'node:events';
import http, { type IncomingMessage } from 'node:http';
import { createServer, type AddressInfo } from 'node:net';
import { Runtime, type LogExporterConfig, type MetricsExporterConfig } from '@temporalio/worker';
import type { Logger } from 'pino';
import { readTextUpTo } from '../src/lib/read-beginning.js';
import { temporalLogger } from './temporal-logger.js';

/** Routes native SDK logs to the SDK's logger instead of the terminal. */
export const NATIVE_LOGGING: LogExporterConfig = {
  filter: { core: 'WARN', other: 'ERROR' },
  forward: {},
};

/** Attempts to find a port, since another program may bind it before the SDK does. */
const ATTEMPTS = 3;

const LOOPBACK = '127.0.0.1';
const ANSWER_MS = 2_000;
const MAX_BYTES = 16 * 1024 * 1024;

/** Reads the SDK's metrics in Prometheus's text format; empty if they cannot be read. */
export type SdkMetrics = () => Promise<string>;

/**
 * Installs the process's only Temporal SDK runtime. The SDK can serve its metrics only at an address of its
 * own: a free port of loopback, from which the operators' listener of the process copies them.
 */
export async function installRuntime(log: Logger): Promise<SdkMetrics> {
  const install = (metrics?: MetricsExporterConfig) => {
    const telemetryOptions = { logging: NATIVE_LOGGING, ...(metrics && { metrics }) };
    Runtime.install({ logger: temporalLogger(log), shutdownSignals: [], telemetryOptions });
  };
  for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
    const port = await freePort();
    try {
      install(metricsAt(`${LOOPBACK}:${port}`));
      return () => readMetrics(port, log);
    } catch (error) {
      log.warn({ err: error, port }, "metrics of Temporal's SDK cannot be served");
    }
  }
  install();
  return () => Promise.resolve('');
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

async function freePort(): Promise<number> {
  const server = createServer().listen(0, LOOPBACK);
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo; // never a path for a TCP listener
  server.close();
  await once(server, 'close');
  return port;
}

async function readMetrics(port: number, log: Logger): Promise<string> {
  try {
    const signal = AbortSignal.timeout(ANSWER_MS);
    const request = http.get({ host: LOOPBACK, port, path: '/metrics', signal });
    const [response] = (await once(request, 'response', { signal })) as [IncomingMessage];
    return await readTextUpTo(response, MAX_BYTES);
  } catch (error) {
    log.warn({ err: error }, "metrics of Temporal's SDK cannot be read");
    return '';
  }
}
