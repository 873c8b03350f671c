import { spawn } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { builtProgram } from '../../../dev/root.js';
import { decodeText } from '../../../src/pages/decode-text.js';
import { endChild, forkUntilMessage } from '../child.js';
import type { AtEnd } from '../cleanups.js';
import { Client } from '../client.js';
import { makeFolder } from '../folder.js';
import { usageOf } from '../process-tree.js';
import { figure, quantile } from '../statistics.js';
import { printTable } from '../table.js';
import { within } from '../within.js';
import type { LabelledPage, PageReader } from './labelled-page.js';

const START_TIMEOUT_MS = 60_000;

/** Minimum ratio to the rate of each reader, one page at a time. */
const AIMS: Readonly<Record<string, number>> = {
  'Readability, jsdom': 10,
  'Readability, linkedom': 1.5,
};

/** Maximum ratio of the 99th percentile to the median time at 32 concurrent requests. */
const SLOWEST_AIM = 3;
const LOAD = 32;
const OWN = [
  ['read', 1],
  ['read', 8],
] as const;

/** Hosts that serve the pages: only a few pages are fetched from a host concurrently. */
const HOSTS = 16;

/** Concurrent pages during the memory measurement, and the number of samples. */
const STEADY = 8;
const SAMPLES = 10;

export interface RateOptions {
  /** Seconds of each rate measurement. */
  readonly seconds: number;
  /** Pages to read during the memory measurement. */
  readonly steadyPages: number;
}

/**
 * Requests the reading of a page.
 *
 * @returns true if the page was read.
 */
type Ask = (number: number) => Promise<boolean>;

/** The rate and times of successful reads. */
interface Rate {
  readonly perSecond: number;
  readonly p50: number;
  readonly p99: number;
  readonly failed: number;
}

/**
 * Measures pages a second over HTTP, for the summarizer as `npm start` runs it and for third-party
 * readers, and the summarizer's memory.
 */
export async function printRates(
  pages: readonly LabelledPage[],
  others: readonly PageReader[],
  { seconds, steadyPages }: RateOptions,
  atEnd: AtEnd,
): Promise<void> {
  const port = await startSite(pages, atEnd);
  /** Returns a unique address, so that no fetch is shared by two requests. */
  const addressOf = (number: number) =>
    `http://127.0.0.${1 + (number % HOSTS)}:${port}/${number % pages.length}?${number}`;
  const { pid, url } = await startSummarizer(atEnd);
  const client = new Client(url, {});
  atEnd(() => client.close());
  const askFor = (operation: string) => async (number: number) => {
    const { status } = await client.send('POST', `/api/${operation}`, { url: addressOf(number) });
    return status === 200;
  };
  let first = 0;
  const rateOf = (atOnce: number, ask: Ask) => runFor(seconds, atOnce, (first += 1_000_000), ask);

  await rateOf(STEADY, askFor('read')); // warm-up: the first reads also load the program
  const rows: (string | number)[][] = [];
  for (const reader of others) {
    const read = async (number: number) => {
      const address = addressOf(number);
      const bytes = Buffer.from(await (await fetch(address)).arrayBuffer());
      await reader.readAll([{ url: address, bytes, html: decodeText(bytes, undefined) }]);
      return true;
    };
    // Sent directly after each other, so that other load on the machine affects both equally.
    const [own, its] = [await rateOf(1, askFor('read')), await rateOf(1, read)];
    const rates = [own, its].map(({ perSecond }) => figure(perSecond));
    const ratio = figure(own.perSecond / its.perSecond);
    const eight = await rateOf(8, read);
    rows.push([reader.name, ...rates, ratio, AIMS[reader.name] ?? '', figure(eight.perSecond)]);
  }
  if (rows.length > 0) {
    console.log('Pages a second, fetched over HTTP and read, one at a time:\n');
    printTable(['beside', 'this product', 'it', 'ratio', 'aim', 'it, 8 at a time'], rows);
  }

  const own: (string | number)[][] = [];
  for (const [operation, atOnce] of [...OWN, ['summarize', LOAD]] as const) {
    const { failed, p50, p99, perSecond } = await rateOf(atOnce, askFor(operation));
    const figures = [perSecond, p50, p99, p99 / p50].map(figure);
    const aim = atOnce === LOAD ? SLOWEST_AIM : '';
    own.push([`${operation}, ${atOnce} at a time`, ...figures, aim, failed]);
  }
  console.log('This product:\n');
  printTable(['', 'a second', 'p50 ms', 'p99 ms', 'p99 to p50', 'aim', 'failed'], own);
  await printMemory(pid, steadyPages, first + 1_000_000, askFor('read'));
}

async function printMemory(pid: number, pages: number, first: number, ask: Ask): Promise<void> {
  const rows: string[][] = [];
  const each = Math.ceil(pages / SAMPLES);
  for (let sample = 1; sample <= SAMPLES; sample++) {
    const numbers = Array.from(
      { length: each },
      (_, index) => first + sample * each + index,
    ).values();
    await Promise.all(
      Array.from({ length: STEADY }, async () => {
        for (const number of numbers) await ask(number);
      }),
    );
    const { summarizer } = await usageOf({ summarizer: pid });
    rows.push([
      `after ${sample * each} pages`,
      figure((summarizer?.memory ?? Number.NaN) / 1024 ** 2),
    ]);
  }
  console.log(`Memory of the summarizer and its readers, ${STEADY} pages at a time:\n`);
  printTable(['', 'MB'], rows);
}

async function startSite(pages: readonly LabelledPage[], atEnd: AtEnd): Promise<number> {
  const folder = path.join(await makeFolder(atEnd), 'pages');
  await mkdir(folder);
  for (const [index, { bytes }] of pages.entries()) {
    await writeFile(path.join(folder, String(index)), bytes);
  }
  const { child, message } = await forkUntilMessage<number>('pages/site', [folder]);
  atEnd(() => void child.kill());
  return message;
}

/** Starts only the summarizer, as `npm run summarizer` does. */
async function startSummarizer(atEnd: AtEnd): Promise<{ pid: number; url: string }> {
  const child = spawn(process.execPath, [builtProgram('api', 'summarizer', 'main.js')], {
    env: {
      PATH: process.env.PATH,
      NODE_ENV: 'production',
      LOG_LEVEL: 'warn',
      SUMMARIZER_PORT: '0',
      OUTBOUND_ALLOW: '127.0.0.0/8',
      // Each request comes from another client, as from behind a proxy.
      TRUSTED_PROXIES: '127.0.0.1',
      RATE_LIMIT_REQUESTS: '10000000',
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  atEnd(() => endChild('the summarizer', child));
  const started = new Promise<{ pid: number; url: string }>((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', () => reject(new Error('The summarizer did not start')));
    createInterface(child.stdout).on('line', (line) => {
      const [, url] = /The summarizer is at (\S+)/.exec(line) ?? [];
      if (url !== undefined && child.pid !== undefined) resolve({ pid: child.pid, url });
    });
  });
  return within('the start of the summarizer', START_TIMEOUT_MS, started);
}

/** Sends requests for this many seconds, starting with the page of the first number. */
async function runFor(seconds: number, atOnce: number, first: number, ask: Ask): Promise<Rate> {
  const times: number[] = [];
  let next = first;
  let failed = 0;
  const started = performance.now();
  const askOn = async () => {
    while (performance.now() - started < seconds * 1_000) {
      const asked = performance.now();
      if (await ask(next++)) times.push(performance.now() - asked);
      else failed++;
    }
  };
  await Promise.all(Array.from({ length: atOnce }, askOn));
  const took = (performance.now() - started) / 1_000;
  return {
    perSecond: times.length / took,
    p50: quantile(times, 0.5),
    p99: quantile(times, 0.99),
    failed,
  };
}
