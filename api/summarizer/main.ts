import { createLogger } from '../../src/platform/process/log.js';
import { platformOutbound } from '../../src/platform/outbound/platform-outbound.js';
import { Pages } from '../../src/pages/pages.js';
import {
  onShutdown,
  reportReady,
  runProcess,
} from '../../src/platform/process/process-lifecycle.js';
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
  let listening: Listening | undefined;
  try {
    const listener = createSummarizer({ pages, http, chain, log });
    listening = await listener.listen(http.host, http.summarizerPort);
    log.info({ url: listening.url }, 'web summarizer is ready');
    if (process.send === undefined) console.log(`The summarizer is at ${listening.url}`);
    reportReady();
    await ended;
  } finally {
    await listening?.close();
    await pages.close();
  }
}
