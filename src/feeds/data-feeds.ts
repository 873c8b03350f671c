import { setTimeout as delay } from 'node:timers/promises';
import { BadGatewayError, NotFoundError } from '../lib/errors.js';
import { SingleFlight } from '../lib/single-flight.js';
import type { Database } from '../platform/database/database.js';
import { OutboundError } from '../platform/outbound/outbound-error.js';
import type { OutboundClient } from '../platform/outbound/outbound.js';
import { FeedFormatError, mergedItems, readItems, type FeedItem } from './feed-items.js';
import type { DataFeed } from './feed-list.js';

/** The `User-Agent` header sent to a feed's server. */
const USER_AGENT = 'AgentPlatform-Feeds/1.0';

const FETCH_MS = 10_000;
const MAX_REDIRECTS = 3;
const MAX_BYTES = 2 * 1024 ** 2;

/** Seconds after which another process fetches a feed whose reader has ended. */
const LEASE_S = 15;

const WAIT_MS = (LEASE_S - 1) * 1_000;
const PAUSE_MS = 250;

/** Maximum number of letters of a validator that is kept. */
const MAX_VALIDATOR = 500;

const XML_TYPES = [
  'application/rss+xml',
  'application/atom+xml',
  'application/rdf+xml',
  'application/xml',
  'text/xml',
];
const JSON_TYPES = ['application/json', 'application/geo+json', 'application/feed+json'];

/** `pending` before the first reading; `failing` if the last one failed. */
export const FEED_STATUSES = ['pending', 'ok', 'failing'] as const;

export interface ListedFeed extends Omit<DataFeed, 'items' | 'url'> {
  readonly status: (typeof FEED_STATUSES)[number];
  readonly lastFetchedAt: Date | null;
}

export interface FeedReading {
  readonly feed: ListedFeed;
  readonly items: readonly FeedItem[];
  readonly fetchedAt: Date;
  /** True if the last fetch failed. */
  readonly stale: boolean;
}

interface Stored {
  readonly items: readonly FeedItem[];
  readonly fetchedAt: Date | null;
  readonly error: string | null;
  /** True while a process fetches the feed. */
  readonly isOpen: boolean;
  /** True if the feed is to be fetched. */
  readonly isDue: boolean;
}

/** The last items, and the headers by which a server finds no change. */
interface Validators {
  readonly items: readonly FeedItem[];
  readonly etag: string | null;
  readonly lastModified: string | null;
}

interface Parts {
  readonly database: Database;
  readonly outbound: Pick<OutboundClient, 'get'>;
  readonly feeds: readonly DataFeed[];
}

/**
 * The operator's feeds. A reader that finds a feed older than its interval fetches it, once for all readers of
 * all processes; items are stored, and answer while the feed's server fails.
 */
export class DataFeeds {
  readonly #parts: Parts;
  readonly #readings = new SingleFlight<Stored>();

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** Lists all feeds, without fetching any. */
  async list(): Promise<readonly ListedFeed[]> {
    const { database, feeds } = this.#parts;
    const rows = await database
      .asPlatform()
      .query<Pick<Stored, 'error' | 'fetchedAt'> & { id: string; url: string }>(
        'SELECT id, url, error, fetched_at AS "fetchedAt" FROM data_feeds',
      );
    const byId = new Map(rows.map((row) => [row.id, row]));
    return feeds.map((feed) => {
      const row = byId.get(feed.id);
      return listed(feed, row?.url === feed.url ? row : undefined);
    });
  }

  /**
   * Returns the last items of a feed, the newest first. @throws NotFoundError; BadGatewayError if the feed was
   * never read, and cannot be read now
   */
  async read(id: string, signal: AbortSignal): Promise<FeedReading> {
    const feed = this.#parts.feeds.find((each) => each.id === id);
    if (!feed) throw new NotFoundError('Feed not found');
    // A fetch whose readers have left ends by itself, for later readers.
    const stored = await this.#readings.run(id, signal, () => this.#refreshed(feed));
    const { error, fetchedAt, items } = stored;
    if (fetchedAt === null) {
      throw new BadGatewayError(`The feed could not be read: ${error ?? 'it is being read'}`);
    }
    return { feed: listed(feed, stored), items, fetchedAt, stale: error !== null };
  }

  /** Fetches the feed if a fetch is due, and returns the stored content. */
  async #refreshed(feed: DataFeed): Promise<Stored> {
    let stored = await this.#find(feed);
    if (stored.isDue) {
      const known = await this.#claim(feed);
      if (known) await this.#fetch(feed, known);
      stored = await this.#find(feed);
    }
    // Another process makes the first fetch.
    const deadline = performance.now() + WAIT_MS;
    while (stored.fetchedAt === null && stored.isOpen && performance.now() < deadline) {
      await delay(PAUSE_MS);
      stored = await this.#find(feed);
    }
    return stored;
  }

  /** Acquires the lease for a due fetch. Undefined if no fetch is due, or another process fetches. */
  async #claim({ id, refreshSeconds, url }: DataFeed): Promise<Validators | undefined> {
    const [claimed] = await this.#parts.database.asPlatform().query<Validators>(
      `INSERT INTO data_feeds AS f (id, url, reading_until)
         VALUES ($id, $url, now() + make_interval(secs => ${LEASE_S}))
         ON CONFLICT (id) DO UPDATE
            SET tried_at = now(), reading_until = excluded.reading_until, url = excluded.url,
                items = CASE WHEN f.url = excluded.url THEN f.items ELSE '[]' END,
                etag = CASE WHEN f.url = excluded.url THEN f.etag END,
                last_modified = CASE WHEN f.url = excluded.url THEN f.last_modified END,
                fetched_at = CASE WHEN f.url = excluded.url THEN f.fetched_at END
          WHERE f.url <> excluded.url OR ${isDue('f')}
       RETURNING items, etag, last_modified AS "lastModified"`,
      { id, url, refreshSeconds },
    );
    return claimed;
  }

  async #fetch(feed: DataFeed, known: Validators): Promise<void> {
    const deadline = AbortSignal.timeout(FETCH_MS);
    try {
      const types = feed.kind === 'json' ? JSON_TYPES : XML_TYPES;
      const { body, headers, isNotModified } = await this.#parts.outbound.get(feed.url, {
        headers: {
          'user-agent': USER_AGENT,
          accept: types.join(', '),
          ...(known.etag !== null && { 'if-none-match': known.etag }),
          ...(known.lastModified !== null && { 'if-modified-since': known.lastModified }),
        },
        maxRedirects: MAX_REDIRECTS,
        maxBytes: MAX_BYTES,
        types,
        isConditional: known.etag !== null || known.lastModified !== null,
        signal: deadline,
      });
      if (isNotModified) return await this.#settle(feed, known);
      const found = readItems(feed, body, headers['content-type']);
      await this.#settle(feed, {
        items: mergedItems(found, known.items),
        etag: validator(headers.etag),
        lastModified: validator(headers['last-modified']),
      });
    } catch (error) {
      await this.#fail(feed, reasonOf(error, deadline));
    }
  }

  async #settle({ id, url }: DataFeed, { etag, items, lastModified }: Validators): Promise<void> {
    await this.#parts.database.asPlatform().query(
      `UPDATE data_feeds SET items = $items::jsonb, etag = $etag, last_modified = $lastModified,
              fetched_at = now(), error = NULL, reading_until = NULL
        WHERE id = $id AND url = $url`,
      { id, url, etag, lastModified, items: JSON.stringify(items) },
    );
  }

  async #fail({ id, url }: DataFeed, error: string): Promise<void> {
    await this.#parts.database
      .asPlatform()
      .query(
        'UPDATE data_feeds SET error = $error, reading_until = NULL WHERE id = $id AND url = $url',
        { id, url, error },
      );
  }

  async #find({ id, refreshSeconds, url }: DataFeed): Promise<Stored> {
    const [stored] = await this.#parts.database.asPlatform().query<Stored>(
      `SELECT items, error, fetched_at AS "fetchedAt",
              coalesce(reading_until > now(), false) AS "isOpen", ${isDue('f')} AS "isDue"
         FROM data_feeds f WHERE id = $id AND url = $url`,
      { id, url, refreshSeconds },
    );
    return stored ?? { items: [], error: null, fetchedAt: null, isOpen: false, isDue: true };
  }
}

/** Condition for a feed whose interval or whose reader's lease is over. */
const isDue = (row: string): string =>
  `(CASE WHEN ${row}.reading_until IS NULL
         THEN ${row}.tried_at <= now() - make_interval(secs => $refreshSeconds)
         ELSE ${row}.reading_until < now() END)`;

function listed(
  { description, homepage, id, kind, name, refreshSeconds }: DataFeed,
  stored: Pick<Stored, 'error' | 'fetchedAt'> | undefined,
): ListedFeed {
  const { error = null, fetchedAt = null } = stored ?? {};
  const read = fetchedAt === null ? 'pending' : 'ok';
  return {
    ...{ id, name, description, kind, homepage, refreshSeconds },
    lastFetchedAt: fetchedAt,
    status: error === null ? read : 'failing',
  };
}

const validator = (header: string | undefined): string | null =>
  header !== undefined && header.length <= MAX_VALIDATOR ? header : null;

/** Returns the reason of a failed fetch, for readers. @throws any other error */
function reasonOf(error: unknown, deadline: AbortSignal): string {
  if (error === deadline.reason) return 'its server did not answer within 10 seconds';
  if (error instanceof FeedFormatError) return `its answer ${error.message}`;
  if (error instanceof OutboundError) return error.message;
  throw error;
}
