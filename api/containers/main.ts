import { createAgentAiServices } from '../../src/agent-ai-services.js';
import { configuredDocker } from '../../src/docker/containers/docker-host.js';
import { Database } from '../../src/platform/database/database.js';
import { requireFitDatabase } from '../../src/platform/database/start-check.js';
import { createLogger } from '../../src/platform/process/log.js';
import { Metrics } from '../../src/metrics.js';
import {
  onShutdown,
  reportReady,
  runProcess,
} from '../../src/platform/process/process-lifecycle.js';
import { loadSettings } from '../../src/settings.js';
import { ListenError, type Listening } from '../http/server.js';
import { createMetricsListener } from '../metrics/metrics.js';
import { serveAgents } from './serve-agents.js';

/* Runs the process that answers agents' AI calls, separate so that their load cannot slow the APIs. */

await runProcess(main);

async function main(): Promise<void> {
  const ended = onShutdown();
  const settings = loadSettings();
  const log = createLogger('agents-ai', settings.process);
  const database = new Database(settings.database.url);
  const docker = configuredDocker(settings);
  const metrics = new Metrics();
  const services = createAgentAiServices({
    settings,
    database,
    log,
    onAttempt: (result, entry) => metrics.recordAttempt(result, entry),
  });
  const open: Pick<Listening, 'close'>[] = [];
  const stop = new AbortController();
  void ended.then(() => stop.abort());
  try {
    if (!(await requireFitDatabase(database, log, stop.signal))) return;
    await services.ai.discovery.start();
    open.push(await serveAgents({ ...services, settings, database, docker, log }));
    const forOperators = createMetricsListener({ settings, metrics, log });
    try {
      open.push(await forOperators.listen(settings.http.host, settings.agents.aiMetricsPort));
    } catch (error) {
      if (!(error instanceof ListenError)) throw error;
      log.warn({ reason: error.message }, 'no metrics: set AGENT_AI_METRICS_PORT');
    }
    reportReady();
    await ended;
  } finally {
    await Promise.all(open.map((listening) => listening.close()));
    await services.ai.close();
    await services.refusals.flush();
    await database.close();
  }
}
