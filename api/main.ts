import { Client } from '@temporalio/client';
import type { Logger } from 'pino';
import { configuredDocker } from '../src/docker/containers/docker-host.js';
import { Database } from '../src/platform/database/database.js';
import { requireFitDatabase } from '../src/platform/database/start-check.js';
import { createLogger } from '../src/platform/process/log.js';
import { Metrics } from '../src/metrics.js';
import { databaseChecks } from '../src/platform/operators/database-checks.js';
import { exportPools } from '../src/platform/operators/database-metrics.js';
import { ClusterMetrics } from '../src/platform/operators/process-metrics.js';
import { openOperators } from '../src/platform/operators/open-operators.js';
import type { MetricsSource } from '../src/platform/operators/metrics-source.js';
import { CheckFailedError, Readiness } from '../src/platform/operators/readiness.js';
import { runCluster, sharesPorts } from '../src/platform/process/cluster.js';
import {
  onShutdown,
  reportNotice,
  reportReady,
  runProcess,
} from '../src/platform/process/process-lifecycle.js';
import { pause } from '../src/lib/pause.js';
import { createApiServices } from '../src/services.js';
import { logServing } from '../src/platform/operators/serving-line.js';
import { loadSettings, type Settings } from '../src/settings.js';
import { publishShippedSkills } from '../src/skills/shipped-skills.js';
import { describeReport, needsAction, reportProviders } from '../src/ai/routing/provider-report.js';
import { hostLoads } from '../src/agents/hosts/hosts.js';
import { agentModelFault } from '../src/agents/model/agent-model-sizes.js';
import type { Ai } from '../src/ai/routing/ai.js';
import { createBackend } from './backend/backend.js';
import type { Listening } from './http/server.js';
import { Supervisors } from '../temporal/supervisors.js';
import { TemporalTraceHistories } from '../temporal/trace-histories.js';
import { lazyConnection } from '../temporal/lazy-connection.js';
import { temporalConnection } from '../temporal/connection.js';
import {
  ATTEMPT_MS,
  checkNamespace,
  nameOf,
  untilTemporalAnswers,
} from '../temporal/start-check.js';
import { BackendClient } from './web/backend-client.js';
import { createWeb } from './web/web.js';

await runProcess(main);

async function main(): Promise<void> {
  const ended = onShutdown();
  const settings = loadSettings();
  const log = createLogger('api', settings.process);
  const { processes } = settings.http;
  if (processes === 1 || sharesPorts()) return serve({ ended, settings, log });
  return serveCluster(processes, { ended, settings, log });
}

interface Parts {
  readonly ended: Promise<void>;
  readonly settings: Settings;
  readonly log: Logger;
}

/** Runs the processes that share the ports, and answers operators for all of them. */
async function serveCluster(processes: number, { ended, settings, log }: Parts): Promise<void> {
  const place = temporalConnection(settings.temporal);
  const { close, connection } = lazyConnection(place.connectionOptions ?? {});
  const database = new Database(settings.database.url, { maxConnections: 1 });
  let serving = 0;
  const readiness = new Readiness({
    processes() {
      if (serving === 0) throw new CheckFailedError(`None of the ${processes} processes serves`);
    },
    ...databaseChecks(database),
    temporal: () => checkNamespace(connection, place),
  });
  readiness.serves();
  void ended.then(() => readiness.ends());
  const metrics = new ClusterMetrics();
  const operators = await openAddress({ settings, log, metrics, readiness });
  try {
    await runCluster(processes, { ended, log, onServing: (count) => (serving = count) });
  } finally {
    await operators.close();
    await close();
    await database.close();
  }
}

async function serve({ ended, settings, log }: Parts): Promise<void> {
  const place = temporalConnection(settings.temporal);
  const { namespace } = place;
  // Lazy: without Temporal, the API still serves requests that do not need it.
  const { close, connection } = lazyConnection(place.connectionOptions ?? {});
  const database = new Database(settings.database.url, { maxConnections: 20 });
  const docker = settings.agents.isApiBesideHost ? configuredDocker(settings) : undefined;
  const temporal = new Client({ connection, namespace });
  const supervisors = new Supervisors(temporal, settings.temporal.uiUrl);
  const metrics = new Metrics();
  metrics.collectDefaults();
  exportPools(metrics.registry, database);
  const readiness = new Readiness({
    ...databaseChecks(database),
    temporal: () => checkNamespace(connection, place),
  });
  void ended.then(() => readiness.ends());
  const services = createApiServices({
    settings,
    database,
    docker,
    supervisors,
    log,
    onAttempt: (result, entry) => metrics.recordAttempt(result, entry),
  });
  const { ai } = services;
  const open: Pick<Listening, 'close'>[] = [];
  const addresses: (string | undefined)[] = [];
  const stop = new AbortController();
  void ended.then(() => stop.abort());
  try {
    if (sharesPorts()) metrics.shareWithCluster();
    else {
      const operators = await openAddress({ settings, log, metrics, readiness });
      addresses.push(operators.url);
      open.push(operators);
    }
    if (!(await requireFitDatabase(database, log, stop.signal))) return;
    const temporalFound = untilTemporalAnswers(() => checkNamespace(connection, place), {
      log,
      signal: stop.signal,
      onAway: reportNotice,
    });
    await publishShippedSkills(database, log);
    await Promise.all([
      ai.discovery.start(),
      Promise.race([temporalFound, pause(ATTEMPT_MS, stop.signal)]),
    ]);
    temporalFound.catch((error: unknown) => log.error({ err: error }, 'no workflow can run'));
    const { requests } = metrics;
    const traceHistories = new TemporalTraceHistories(temporal, settings.temporal.uiUrl);
    const parts = { ...services, settings, database, log, requests, traceHistories };
    const { backendPort, host, webPort } = settings.http;
    const backend = createBackend(parts);
    const served = await backend.listen(host, backendPort, 'BACKEND_PORT');
    open.push(served);
    const client = new BackendClient(settings.http.backendUrl, settings.http.internalApiKey);
    const web = createWeb({ ...parts, backend: client });
    const servedWeb = await web.listen(host, webPort, 'WEB_PORT');
    open.push(servedWeb);
    addresses.push(servedWeb.url, served.url);
    if (!settings.mail.available) {
      const notice = 'No mail is sent: SMTP_URL is not set. Passwords cannot be reset by mail.';
      log.warn(notice);
      reportNotice(notice);
    }
    if (settings.accounts.firstIsAdmin) {
      log.info('ADMIN_EMAILS is not set: the first account on an empty database becomes the admin');
    }
    await services.workspace.clear().catch((error: unknown) => {
      log.warn({ err: error }, 'the workspace cannot be opened');
    });
    readiness.serves();
    reportReady();
    // A database that is lost just now must not end the process: readiness reports it.
    const hosts = await hostLoads(database.asPlatform()).catch(() => undefined);
    logServing(log, {
      addresses,
      databaseUrl: settings.database.url,
      temporal: nameOf(place),
      ...(hosts && { hosts: hosts.map(({ id }) => id) }),
      providers: Object.keys(settings.ai.providers),
    });
    void announceProviders(ai, log);
    await ended;
  } finally {
    await Promise.all(open.map((listening) => listening.close()));
    await ai.close();
    await docker?.workspaces.close();
    await services.refusals.flush();
    await close();
    await database.close();
  }
}

/** Opens the operators' address of the API. */
function openAddress(parts: {
  readonly settings: Settings;
  readonly log: Logger;
  readonly metrics: MetricsSource;
  readonly readiness: Readiness;
}) {
  const { host: address, metricsPort: port } = parts.settings.http;
  return openOperators({ ...parts, listen: { address, port }, variable: 'METRICS_PORT' });
}

/** Reports in the log and at the launcher's terminal which providers answer, and the default model. */
async function announceProviders(ai: Ai, log: Logger): Promise<void> {
  const report = await reportProviders(ai);
  const line = describeReport(report);
  log[needsAction(report) ? 'warn' : 'info']({ providers: report.providers }, line);
  reportNotice(line);
  const fault = report.defaultModel && agentModelFault(report.defaultModel);
  if (fault === undefined) return;
  log.warn(fault);
  reportNotice(fault);
}
