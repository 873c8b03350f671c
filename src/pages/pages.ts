import { ServiceError } from '../lib/errors.js';
import { networksOf } from '../platform/http/client-networks.js';
import { OutboundError } from '../platform/outbound/outbound-error.js';
import type { Outbound } from '../platform/outbound/outbound.js';
import { readTarget } from '../platform/outbound/target.js';
import { Turns } from '../lib/turns.js';
import { cacheTime } from './cache-time.js';
import { HostPlaces } from './host-places.js';
import { KeptPages } from './kept-pages.js';
import type { FetchedPage, PageReadings, Reading } from './read-page.js';
import { ReadingProcesses, type ReadingBounds } from './reading-processes.js';
import { SharedWork } from './shared-work.js';

/** What a page's server learns of who reads it. */
const USER_AGENT = 'AgentPlatform-WebSummarizer/1.0';
const TYPES = ['text/html', 'application/xhtml+xml'];

const MAX_REDIRECTS = 5;
const MAX_PAGE_BYTES = 10 * 1024 ** 2;
const MAX_KEPT_BYTES = 64 * 1024 ** 2;

/** Seconds after which a full queue is asked again. */
const RETRY_AFTER_S = 5;

/** What all requests together may take. */
export interface PageBounds {
  /** Milliseconds from a request to the last byte of its page. */
  readonly fetchMs: number;
  /** Pages that are fetched or read at a time. */
  readonly atOnce: number;
  /** Requests that wait for that. */
  readonly waiting: number;
  readonly perHost: number;
}

const BOUNDS: PageBounds = { fetchMs: 10_000, atOnce: 32, waiting: 200, perHost: 4 };

/** Somebody who wants a page read. */
export interface PageAsker {
  /** Their address: what one client asks for is in nobody else's way. */
  readonly client: string;
  /** Aborts when they leave. */
  readonly signal: AbortSignal;
}

/** A page that was read. */
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

/** 503: more pages wait than may. */
export class QueueFullError extends ServiceError {
  constructor() {
    super(503, 'Too many pages are waiting to be read, please try again.', undefined, {
      retryAfter: RETRY_AFTER_S,
    });
  }
}

export interface PagesOptions {
  readonly outbound: Outbound;
  /** Of processes that read pages; that beside this file unless given. */
  readonly program?: URL;
  readonly bounds?: Partial<PageBounds>;
  readonly reading?: Partial<ReadingBounds>;
}

/** Fetches pages and reads them, within bounds for all, for each client and for each host. */
export class Pages {
  readonly #outbound: Outbound;
  readonly #bounds: PageBounds;
  readonly #processes: ReadingProcesses;
  readonly #turns: Turns;
  readonly #hosts: HostPlaces;
  readonly #fetches = new SharedWork<Fetched>();
  readonly #kept = new KeptPages<PageAnswer<Reading>>(MAX_KEPT_BYTES);

  constructor({ bounds, outbound, program, reading }: PagesOptions) {
    this.#outbound = outbound;
    this.#bounds = { ...BOUNDS, ...bounds };
    this.#processes = new ReadingProcesses(
      program ?? new URL('./reading-process.js', import.meta.url),
      reading,
    );
    this.#turns = new Turns(this.#bounds.atOnce);
    this.#hosts = new HostPlaces(this.#bounds.perHost);
  }

  /**
   * Reads a page, or gives what was read of it a moment ago, where the page allows that.
   *
   * @throws OutboundError, TooComplexError, QueueFullError; the signal's reason when it aborts.
   */
  async read<R extends Reading>(
    reading: R,
    text: string,
    { client, signal }: PageAsker,
  ): Promise<PageAnswer<R>> {
    const address = readTarget(text).url.href;
    const key = `${reading} ${address}`;
    // What is kept under a reading's name is of that reading.
    const kept = this.#kept.get(key) as PageAnswer<R> | undefined;
    if (kept) return kept;
    if (this.#turns.state.waiting >= this.#bounds.waiting) throw new QueueFullError();
    const deadline = AbortSignal.timeout(this.#bounds.fetchMs);
    const limit = AbortSignal.any([signal, deadline]);
    const owner = networksOf(client).host;
    try {
      return await this.#turns.run({ owner, isUrgent: true, signal: limit }, async () => {
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

  /** How many wait for a page that is being fetched. */
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
        admit: (host, signal) => this.#hosts.take(host, signal),
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
  new OutboundError('TIMEOUT', 'The page did not come within 10 seconds', { cause });
