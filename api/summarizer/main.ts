import { createLogger } from '../../src/platform/process/log.js';
import { platformOutbound } from '../../src/platform/outbound/platform-outbound.js';
import { openOperators } from '../../src/platform/operators/open-operators.js';
import { ProcessMetrics } from '../../src/platform/operators/process-metrics.js';
import { Readiness } from '../../src/platform/operators/readiness.js';
import { RequestSeconds } from '../../src/platform/http/request-seconds.js';
import { Pages } from '../../src/pages/pages.js';
import {
  onShutdown,
  reportReady,
  runProcess,
} from '../../src/platform/process/process-lifecycle.js';
import { logServing } from '../../src/platform/operators/serving-line.js';
import { loadSummarizerSettings } from '../../src/settings.js';
import type { Listening } from '../http/server.js';
import { createSummarizer } from './summarizer.js';

/* Runs the process that reads untrusted pages, without database access or keys that they could steal. */

await runProcess(main);

async function main(): Promise<void> {
  const ended = onShutdown();
  const settings = loadSummarizerSettings();
  const { chain, http } = settings;
  const log = createLogger('summarizer', settings.process);
  const pages = new Pages({ outbound: platformOutbound(settings) });
  const metrics = new ProcessMetrics();
  metrics.collectDefaults();
  const requests = new RequestSeconds(metrics.registry);
  const readiness = new Readiness({});
  void ended.then(() => readiness.ends());
  const operators = await openOperators({
    settings: { http },
    listen: { address: http.host, port: http.summarizerMetricsPort },
    variable: 'SUMMARIZER_METRICS_PORT',
    metrics,
    readiness,
    log,
  });
  let listening: Listening | undefined;
  try {
    const listener = createSummarizer({ pages, http, chain, log, requests });
    listening = await listener.listen(http.host, http.summarizerPort, 'SUMMARIZER_PORT');
    if (process.send === undefined) console.log(`The summarizer is at ${listening.url}`);
    readiness.serves();
    reportReady();
    logServing(log, { addresses: [listening.url, operators.url] });
    await ended;
  } finally {
    await operators.close();
    await listening?.close();
    await pages.close();
  }
}
