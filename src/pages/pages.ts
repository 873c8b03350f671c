import { ServiceError } from '../lib/errors.js';
import { FairLimiter } from '../lib/fair-limiter.js';
import { networksOf } from '../platform/http/client-networks.js';
import { OutboundError } from '../platform/outbound/outbound-error.js';
import type { OutboundClient } from '../platform/outbound/outbound.js';
import { readTarget } from '../platform/outbound/target.js';
import { cacheTime } from './cache-time.js';
import { PageCache } from './page-cache.js';
import type { FetchedPage, PageReadings, Reading } from './read-page.js';
import { ReadingProcesses, type ReadingBounds } from './reading-processes.js';
import { SingleFlight } from '../lib/single-flight.js';

/** The `User-Agent` header sent to a page's server. */
const USER_AGENT = 'AgentPlatform-WebSummarizer/1.0';
const TYPES = ['text/html', 'application/xhtml+xml'];

const MAX_REDIRECTS = 5;
const MAX_PAGE_BYTES = 10 * 1024 ** 2;
const MAX_KEPT_BYTES = 64 * 1024 ** 2;

/** Seconds to wait before a retry when the queue is full. */
const RETRY_AFTER_S = 5;

/** Limits of all requests together. */
export interface PageBounds {
  /** Milliseconds from a request to the last byte of its page. */
  readonly fetchMs: number;
  /** Pages that are fetched or read at a time. */
  readonly atOnce: number;
  /** Requests in the queue. */
  readonly waiting: number;
  readonly perHost: number;
}

const BOUNDS: PageBounds = { fetchMs: 10_000, atOnce: 32, waiting: 200, perHost: 4 };

export interface PageReader {
  /** Client address; the queue shares capacity fairly between clients. */
  readonly client: string;
  /** Aborts when the client disconnects. */
  readonly signal: AbortSignal;
}

export interface PageAnswer<R extends Reading> {
  readonly value: PageReadings[R];
  readonly finalUrl: string;
  readonly fetchedAt: string;
}

interface Fetched {
  readonly page: FetchedPage;
  readonly fetchedAt: string;
  readonly keepMs: number;
}

/** 503: the queue is full. */
export class QueueFullError extends ServiceError {
  override readonly name = 'QueueFullError';

  constructor() {
    super(503, 'Too many pages are waiting to be read: retry later.', undefined, {
      retryAfter: RETRY_AFTER_S,
    });
  }
}

export interface PagesOptions {
  readonly outbound: OutboundClient;
  /** Program of the reading processes; the file beside this one by default. */
  readonly program?: URL;
  readonly bounds?: Partial<PageBounds>;
  readonly reading?: Partial<ReadingBounds>;
}

/** Fetches and reads pages within limits in total, for each client and for each host. */
export class Pages {
  readonly #outbound: OutboundClient;
  readonly #bounds: PageBounds;
  readonly #processes: ReadingProcesses;
  readonly #limiter: FairLimiter;
  readonly #hosts: FairLimiter;
  readonly #fetches = new SingleFlight<Fetched>();
  readonly #kept = new PageCache<PageAnswer<Reading>>(MAX_KEPT_BYTES);

  constructor({ bounds, outbound, program, reading }: PagesOptions) {
    this.#outbound = outbound;
    this.#bounds = { ...BOUNDS, ...bounds };
    this.#processes = new ReadingProcesses(
      program ?? new URL('./reading-process.js', import.meta.url),
      reading,
    );
    const { atOnce, perHost, waiting } = this.#bounds;
    this.#limiter = new FairLimiter({
      atOnce,
      queue: { max: waiting, refusal: () => new QueueFullError() },
    });
    this.#hosts = new FairLimiter({ atOnce: Infinity, perOwner: perHost });
  }

  /**
   * Reads a page, or returns a recent reading from the cache if the page allows caching.
   * @throws OutboundError, TooComplexError, QueueFullError; the signal's reason when it aborts.
   */
  async read<R extends Reading>(
    reading: R,
    text: string,
    { client, signal }: PageReader,
  ): Promise<PageAnswer<R>> {
    const address = readTarget(text).url.href;
    const key = `${reading} ${address}`;
    // A cache entry's key contains the name of its reading.
    const kept = this.#kept.get(key) as PageAnswer<R> | undefined;
    if (kept) return kept;
    const deadline = AbortSignal.timeout(this.#bounds.fetchMs);
    const limit = AbortSignal.any([signal, deadline]);
    const owner = networksOf(client).host;
    try {
      return await this.#limiter.run({ owner, signal: limit }, async () => {
        const fetched = await this.#fetches.run(address, limit, (end) => this.#fetch(address, end));
        const { fetchedAt, keepMs, page } = fetched;
        const value = await this.#processes.read(page, reading, { owner, signal });
        const answer = { value, finalUrl: page.url, fetchedAt };
        this.#kept.set(key, answer, keepMs);
        return answer;
      });
    } catch (error) {
      if (error === deadline.reason) throw timedOut(error);
      throw error;
    }
  }

  /** Returns the number of requests that wait for a page being fetched. */
  waitingFor(text: string): number {
    return this.#fetches.waitingFor(readTarget(text).url.href);
  }

  close(): Promise<void> {
    return this.#processes.close();
  }

  async #fetch(address: string, end: AbortSignal): Promise<Fetched> {
    const deadline = AbortSignal.timeout(this.#bounds.fetchMs);
    try {
      const { body, headers, url } = await this.#outbound.get(address, {
        headers: { 'user-agent': USER_AGENT, accept: TYPES.join(', ') },
        maxRedirects: MAX_REDIRECTS,
        maxBytes: MAX_PAGE_BYTES,
        types: TYPES,
        signal: AbortSignal.any([end, deadline]),
        admit: (owner, signal) => this.#hosts.acquire({ owner, signal }),
      });
      const page = { bytes: body, contentType: headers['content-type'], url };
      return { page, fetchedAt: new Date().toISOString(), keepMs: cacheTime(headers) };
    } catch (error) {
      if (error === deadline.reason) throw timedOut(error);
      throw error;
    }
  }
}

const timedOut = (cause: unknown) =>
  new OutboundError('TIMEOUT', 'The page did not arrive within 10 seconds', { cause });
