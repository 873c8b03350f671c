import { once } from 'node:events';
import http, { type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { pino, type Logger } from 'pino';
import { createSummarizer, type SummarizerDependencies } from '../../api/summarizer/summarizer.js';
import { OutboundClient } from '../../src/platform/outbound/outbound.js';
import { allowedDestinations } from '../../src/platform/outbound/allowed-places.js';
import { Pages, type PagesOptions } from '../../src/pages/pages.js';
import { loadSummarizerSettings } from '../../src/settings.js';
import { readingProgram } from './reading-program.js';

/** A summarizer and the only site that it can reach. */
export interface TestSummarizer {
  readonly url: string;
  /** For example `http://page.test:1234`. DNS is stubbed: every host name resolves to this site. */
  readonly site: string;
  readonly dependencies: SummarizerDependencies;
  close(): Promise<void>;
}

/** @param pages handles the requests to the site. */
export async function testSummarizer(
  pages: RequestListener,
  options: Pick<PagesOptions, 'program' | 'reading'> & { readonly log?: Logger } = {},
): Promise<TestSummarizer> {
  const { log = pino({ level: 'silent' }), program = readingProgram(), reading = {} } = options;
  const server = http.createServer(pages);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo; // never a string for a TCP listener
  const { chain, http: settings } = loadSummarizerSettings({
    RATE_LIMIT_REQUESTS: '1000000',
    TRUSTED_PROXIES: '127.0.0.1',
  });
  const outbound = new OutboundClient({
    allow: allowedDestinations.parse(`127.0.0.1:${port}`),
    resolve: () => Promise.resolve(['127.0.0.1']),
  });
  const dependencies = {
    // Long enough that a busy machine does not cause a timeout.
    pages: new Pages({ outbound, program, reading, bounds: { fetchMs: 120_000 } }),
    http: settings,
    chain,
    log,
  };
  const listening = await createSummarizer(dependencies).listen('127.0.0.1', 0);
  return {
    url: listening.url,
    site: `http://page.test:${port}`,
    dependencies,
    async close() {
      await listening.close();
      await dependencies.pages.close();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
