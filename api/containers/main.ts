import { createAgentAiServices } from '../../src/agent-ai-services.js';
import { configuredDocker } from '../../src/docker/containers/docker-host.js';
import { Database } from '../../src/platform/database/database.js';
import { requireFitDatabase } from '../../src/platform/database/start-check.js';
import { createLogger } from '../../src/platform/process/log.js';
import { Metrics } from '../../src/metrics.js';
import { databaseChecks } from '../../src/platform/operators/database-checks.js';
import { exportPools } from '../../src/platform/operators/database-metrics.js';
import { openOperators } from '../../src/platform/operators/open-operators.js';
import { CheckFailedError, Readiness } from '../../src/platform/operators/readiness.js';
import {
  onShutdown,
  reportReady,
  runProcess,
} from '../../src/platform/process/process-lifecycle.js';
import { logServing } from '../../src/platform/operators/serving-line.js';
import { loadSettings } from '../../src/settings.js';
import type { Listening } from '../http/server.js';
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
  metrics.collectDefaults();
  exportPools(metrics.registry, database);
  let isListening = () => false;
  const readiness = new Readiness({
    ...databaseChecks(database),
    listener() {
      if (!isListening())
        throw new CheckFailedError('Agents are not served yet, because Docker does not answer');
    },
  });
  void ended.then(() => readiness.ends());
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
    const operators = await openOperators({
      settings,
      listen: { address: settings.http.host, port: settings.agents.aiMetricsPort },
      variable: 'AGENT_AI_METRICS_PORT',
      metrics,
      readiness,
      log,
    });
    open.push(operators);
    if (!(await requireFitDatabase(database, log, stop.signal))) return;
    await services.ai.discovery.start();
    const { requests } = metrics;
    const served = await serveAgents({ ...services, settings, database, docker, log, requests });
    open.push(served);
    isListening = () => served.url !== undefined;
    readiness.serves();
    reportReady();
    logServing(log, {
      addresses: [served.url, operators.url],
      databaseUrl: settings.database.url,
      providers: Object.keys(settings.ai.providers),
    });
    await ended;
  } finally {
    await Promise.all(open.map((listening) => listening.close()));
    await services.ai.close();
    await services.refusals.flush();
    await database.close();
  }
}
