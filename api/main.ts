import { Client, Connection } from '@temporalio/client';
import { loadClientConnectConfig } from '@temporalio/envconfig';
import { createAi } from '../src/ai/ai.js';
import { loadConfig } from '../src/config.js';
import { connectContainers } from '../src/containers/connect-containers.js';
import { Database } from '../src/database/database.js';
import { createLogger } from '../src/log.js';
import { Metrics } from '../src/metrics.js';
import { reportFailure, reportReady, onShutdown } from '../src/process-lifecycle.js';
import { SecretBox } from '../src/secrets/secret-box.js';
import { createBackend } from './backend/backend.js';
import { serveAgents } from './containers/serve-agents.js';
import type { Listening } from './http/server.js';
import { createMetricsListener } from './metrics/metrics.js';
import { HeartbeatSchedules } from '../temporal/heartbeat-schedules.js';
import { Supervisors } from '../temporal/supervisors.js';
import { BackendClient } from './web/backend-client.js';
import { createWeb } from './web/web.js';

try {
  await main();
} catch (error) {
  reportFailure(error);
  process.exitCode = 1;
}
process.disconnect?.();

async function main(): Promise<void> {
  const ended = onShutdown();
  const config = loadConfig();
  const log = createLogger('api', config);
  const { connectionOptions, namespace = 'default' } = loadClientConnectConfig();
  // Lazy: an API without its workflow engine still answers what it can.
  const connection = Connection.lazy(connectionOptions);
  const database = new Database(config.databaseUrl, { maxConnections: 20 });
  const secrets = new SecretBox(config.encryptionKey);
  const containers = connectContainers(config);
  const temporal = new Client({ connection, namespace });
  const supervisors = new Supervisors(temporal, config.temporalUiUrl);
  const heartbeatSchedules = new HeartbeatSchedules(temporal);
  const metrics = new Metrics();
  const ai = createAi({
    config,
    database,
    log,
    onAttempt: (result) => metrics.recordAttempt(result),
  });
  const open: Pick<Listening, 'close'>[] = [];
  try {
    const backend = createBackend({
      ai,
      config,
      database,
      secrets,
      supervisors,
      heartbeatSchedules,
      containers,
      log,
    });
    open.push(await backend.listen(config.host, config.backendPort));
    const client = new BackendClient(config.backendUrl, config.internalApiKey);
    const web = createWeb({ ai, config, database, secrets, backend: client, log });
    open.push(await web.listen(config.host, config.webPort));
    open.push(await serveAgents({ ai, config, containers, database, log }));
    const forOperators = createMetricsListener({ config, database, metrics, log });
    open.push(await forOperators.listen(config.host, config.metricsPort));
    reportReady();
    await ended;
  } finally {
    await Promise.all(open.map((listening) => listening.close()));
    await ai.meter.close();
    await connection.close();
    await database.close();
  }
}
