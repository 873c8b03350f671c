import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Client } from '@temporalio/client';
import { msToTs } from '@temporalio/common/lib/time.js';
import { DefaultLogger, NativeConnection, Runtime, type LogEntry } from '@temporalio/worker';
import { findTemporalCli } from '../../dev/temporal/temporal-binary.js';
import { startTemporal } from '../../dev/temporal/temporal.js';
import { freePort } from '../../dev/ports.js';
import { readSettings } from '../../dev/settings.js';
import { ensureSearchAttributes } from '../../temporal/ensure-search-attributes.js';
import { NATIVE_LOGGING } from '../../worker/temporal-runtime.js';
import type { WorkflowCode } from '../../worker/workflow-code.js';
import { IN_THIS_THREAD } from '../workflows/support/in-this-thread.js';
import { workflowBundle } from '../workflows/support/workflow-bundle.js';
import { until } from './until.js';

/** A namespace on a Temporal dev server, for one fixture. */
export interface TestTemporal {
  readonly address: string;
  readonly namespace: string;
  readonly connection: NativeConnection;
  readonly client: Client;
  /** Removes the namespace, and stops the server if it was started here. */
  close(): Promise<void>;
}

export interface TestTemporalOptions {
  /** True if the test has installed the SDK's runtime itself. */
  readonly hasRuntime?: boolean;
}

/** Creates a namespace on the server of `TEST_TEMPORAL_ADDRESS`, or on a server started here. */
export async function testTemporal(options: TestTemporalOptions = {}): Promise<TestTemporal> {
  const given = process.env.TEST_TEMPORAL_ADDRESS;
  const server = given ? { address: given, stop: () => Promise.resolve() } : await startServer();
  try {
    if (!options.hasRuntime) quietRuntime();
    const connection = await NativeConnection.connect({ address: server.address });
    const namespace = `test-${randomBytes(6).toString('hex')}`;
    await connection.workflowService.registerNamespace({
      namespace,
      workflowExecutionRetentionPeriod: msToTs('1 day'),
    });
    // The server accepts a new namespace only after a short delay.
    await until(async () => {
      try {
        await ensureSearchAttributes(connection, namespace);
        return true;
      } catch {
        return false;
      }
    });
    const client = new Client({ connection, namespace });
    return {
      address: server.address,
      namespace,
      connection,
      client,
      async close() {
        try {
          await connection.operatorService.deleteNamespace({ namespace });
          await connection.close();
        } finally {
          await server.stop();
        }
      },
    };
  } catch (error) {
    await server.stop();
    throw error;
  }
}

/** Bundles the current source of the workflows. */
export async function workflowCode(): Promise<WorkflowCode & typeof IN_THIS_THREAD> {
  return { workflowBundle: await workflowBundle(), ...IN_THIS_THREAD };
}

/** Log lines of this process's workers, activities and workflows. */
export const workerLog: string[] = [];

let installed = false;

/** Installs the SDK's runtime, of which a process has only one, with a log that is kept instead of printed. */
export function quietRuntime(): void {
  if (installed) return;
  installed = true;
  const keep = ({ level, message, meta }: LogEntry) => {
    workerLog.push(JSON.stringify({ level, message, meta: describe(meta) }));
  };
  Runtime.install({
    logger: new DefaultLogger('INFO', keep),
    shutdownSignals: [],
    telemetryOptions: { logging: NATIVE_LOGGING },
  });
}

function describe(meta: LogEntry['meta']): unknown {
  if (meta?.error instanceof Error) return { ...meta, error: String(meta.error.stack) };
  return meta;
}

async function startServer() {
  const folder = await mkdtemp(path.join(tmpdir(), 'test-temporal-'));
  const server = await startTemporal({
    cli: await findTemporalCli(readSettings(process.env)),
    runDir: folder,
    port: await freePort(),
    uiPort: await freePort(),
  });
  return {
    address: server.address,
    async stop() {
      await server.stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
