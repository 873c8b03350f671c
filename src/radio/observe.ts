import type { Logger } from 'pino';
import type { Database, TenantTransaction } from '../platform/database/database.js';
import type { ByteCount, RadioFormat } from '../types/radio.js';
import { endSource, type Icecast } from './icecast.js';
import type { Source } from './icecast-stats.js';
import { CONTENT_TYPES, mountOf, readMount } from './mounts.js';
import { MAX_LIVE_STREAMS } from './streams.js';

/** Milliseconds over which a source is measured. */
const MEASURED_MS = 30_000;

/** Counts as old as this are kept: with an observation every ten seconds, they span at least `MEASURED_MS`. */
const KEPT_MS = MEASURED_MS + 15_000;

/** Milliseconds by which a count may be old: Icecast counts about every five seconds. */
const COUNT_AGE_MS = 6_000;

/** Maximum bytes a second of a source, which are 320 kbit/s. */
const MAX_BYTES_A_SECOND = 40_000;

const MAX_LIFE_MS = 12 * 60 * 60_000;

/** A stream whose source is connected, with what was measured before. */
interface Measured {
  readonly id: string;
  readonly userId: string;
  readonly format: RadioFormat;
  readonly sourceStartedAt: Date | null;
  readonly counts: readonly ByteCount[];
}

export interface ObservationParts {
  readonly database: Database;
  readonly icecast: Pick<Icecast, 'endSource' | 'sources'>;
  readonly log: Logger;
  readonly now?: () => number;
}

/**
 * Measures all sources, and ends those that may not stay. One process at a time does so.
 * @throws IcecastAwayError
 */
export async function observeRadio(parts: ObservationParts): Promise<void> {
  const { database, icecast, log, now = Date.now } = parts;
  await database.asPlatform().transaction(async (db) => {
    const [lock] = await db.query<{ isMine: boolean }>(
      `SELECT pg_try_advisory_xact_lock(hashtext('radio-observation')) AS "isMine"`,
    );
    if (lock?.isMine !== true) return;
    const sources = await icecast.sources();
    const streams = await streamsOf(db, sources);
    const at = now();
    const seen = sources.map((source) => {
      const stream = streams.get(source.mount);
      return { source, stream, counts: countsOf(source, stream, at) };
    });
    await store(db, seen);
    const tooMany = excessOf(seen);
    await Promise.all(
      seen.map(async ({ counts, source, stream }) => {
        const reason =
          reasonToEnd(source, stream, counts, at) ??
          (tooMany.has(source.mount) ? 'too many of its owner' : undefined);
        if (reason === undefined) return;
        await endSource(icecast, source.mount);
        log.info({ streamId: stream?.id, reason }, 'a source of the radio was ended');
      }),
    );
  });
}

/** Returns the reason why a source may not stay; undefined if it may. */
export function reasonToEnd(
  source: Source,
  stream: Pick<Measured, 'format'> | undefined,
  counts: readonly ByteCount[],
  now: number,
): string | undefined {
  if (!stream) return 'no stream';
  if (!CONTENT_TYPES[stream.format].includes(source.contentType)) return 'content type';
  if (now - source.startedAt.getTime() > MAX_LIFE_MS) return 'twelve hours';
  const [first, last] = [counts[0], counts.at(-1)];
  if (!first || !last || last.at - first.at < MEASURED_MS) return undefined;
  const bytes = last.bytes - first.bytes;
  if (bytes === 0) return 'no byte for 30 seconds';
  const seconds = (last.at - first.at + COUNT_AGE_MS) / 1_000;
  return bytes > MAX_BYTES_A_SECOND * seconds ? 'more than 320 kbit/s' : undefined;
}

/** Returns the mounts of sources beyond `MAX_LIVE_STREAMS` of an owner, the latest ones. */
function excessOf(seen: readonly Seen[]): ReadonlySet<string> {
  const kept = new Map<string, number>();
  const excess = new Set<string>();
  const byStart = seen.toSorted((a, b) => Number(a.source.startedAt) - Number(b.source.startedAt));
  for (const { source, stream } of byStart) {
    if (!stream) continue;
    const count = (kept.get(stream.userId) ?? 0) + 1;
    kept.set(stream.userId, count);
    if (count > MAX_LIVE_STREAMS) excess.add(source.mount);
  }
  return excess;
}

/** Returns the last counts of a source with the present one, oldest first. */
function countsOf(source: Source, stream: Measured | undefined, at: number): ByteCount[] {
  const isSame = stream?.sourceStartedAt?.getTime() === source.startedAt.getTime();
  const before = isSame ? stream.counts : [];
  const present = { at, bytes: source.bytes };
  return [...before.filter((count) => count.at > at - KEPT_MS && count.at < at), present];
}

/** Returns the measured kbit/s; null after the first count. */
export function bitrateOf(counts: readonly ByteCount[]): number | null {
  const [first, last] = [counts[0], counts.at(-1)];
  if (!first || !last || last.at === first.at) return null;
  return Math.round(((last.bytes - first.bytes) * 8) / (last.at - first.at));
}

async function streamsOf(
  db: TenantTransaction,
  sources: readonly Source[],
): Promise<ReadonlyMap<string, Measured>> {
  const ids = sources.flatMap(({ mount }) => readMount(mount)?.id ?? []);
  const rows = await db.query<Measured>(
    `SELECT id, user_id AS "userId", format, source_started_at AS "sourceStartedAt", counts
       FROM radio_streams WHERE id = ANY ($ids)`,
    { ids },
  );
  return new Map(rows.map((row) => [mountOf(row), row]));
}

interface Seen {
  readonly source: Source;
  readonly stream: Measured | undefined;
  readonly counts: readonly ByteCount[];
}

async function store(db: TenantTransaction, seen: readonly Seen[]): Promise<void> {
  const measured = seen.flatMap(({ counts, source, stream }) =>
    stream === undefined
      ? []
      : [
          {
            id: stream.id,
            started: source.startedAt.toISOString(),
            bitrate: bitrateOf(counts),
            peak: source.peakListeners,
            counts,
          },
        ],
  );
  await db.query(
    `UPDATE radio_streams s
        SET source_started_at = m.started, bitrate = m.bitrate, counts = m.counts,
            peak_listeners = GREATEST(s.peak_listeners, m.peak)
       FROM jsonb_to_recordset($measured::jsonb)
         AS m (id text, started timestamptz, bitrate integer, peak integer, counts jsonb)
      WHERE s.id = m.id`,
    { measured: JSON.stringify(measured) },
  );
}
