import { createHash, randomBytes } from 'node:crypto';
import { checkGate } from '../accounts/token-gating/check-gate.js';
import { NoTokenError, type TokenGate } from '../accounts/token-gating/token-gate.js';
import { requireAgents, type Page } from '../agents/agents/agents.js';
import { cachedFor } from '../lib/cached-for.js';
import { ConflictError, ForbiddenError, NotFoundError, UnavailableError } from '../lib/errors.js';
import { recordAudit } from '../platform/audit/audit.js';
import type { Requester } from '../platform/audit/requester.js';
import type { Database, TenantDatabase } from '../platform/database/database.js';
import type { RadioFormat, RadioStatus } from '../types/radio.js';
import { endSource } from './icecast.js';
import type { Source } from './icecast-stats.js';
import { mountOf, readMount } from './mounts.js';
import type { RadioEngine } from './radio-engine.js';
import { NoRadioError, type IcecastSettings } from './settings.js';

/** Maximum number of streams of a user. */
export const MAX_STREAMS = 20;

/** Maximum number of live streams of a user, since the sources of all users share Icecast's hundred places. */
export const MAX_LIVE_STREAMS = 5;

/** Bytes of a source's password. */
const PASSWORD_BYTES = 24;

/** Milliseconds for which a process caches the list of live streams. */
const LIST_KEPT_MS = 500;

export interface NewStream {
  readonly title: string;
  readonly description?: string | undefined;
  readonly genre?: string | undefined;
  readonly format: RadioFormat;
  readonly agentId?: string | undefined;
}

interface StreamRow {
  readonly id: string;
  readonly title: string;
  readonly description: string | null;
  readonly genre: string | null;
  readonly agentId: string | null;
  readonly format: RadioFormat;
  readonly peakListeners: number;
  readonly sourceStartedAt: Date | null;
  readonly bitrate: number | null;
  readonly createdAt: Date;
}

/** A stream with the state of its source. */
export interface RadioStream {
  readonly id: string;
  readonly title: string;
  readonly description: string | null;
  readonly genre: string | null;
  readonly agentId: string | null;
  readonly format: RadioFormat;
  readonly status: RadioStatus;
  /** In kbit/s; null until it is measured. */
  readonly bitrate: number | null;
  /** Null while Icecast does not answer. */
  readonly listeners: number | null;
  readonly peakListeners: number;
  readonly nowPlaying: string | null;
  readonly startedAt: Date | null;
  readonly listenUrl: string;
  readonly createdAt: Date;
}

const COLUMNS = `id, title, description, genre, agent_id AS "agentId", format,
  peak_listeners AS "peakListeners", source_started_at AS "sourceStartedAt", bitrate,
  created_at AS "createdAt"`;

/** The form in which passwords are stored; they are random, so that a fast hash is enough. */
export const passwordHash = (password: string): string =>
  createHash('sha256').update(password).digest('hex');

interface Parts {
  readonly database: Database;
  readonly gate: TokenGate;
  /** Undefined without a radio. */
  readonly engine: RadioEngine | undefined;
}

/** The streams of users. Icecast has the audio, and the list of live streams. */
export class RadioStreams {
  readonly #parts: Parts;
  readonly #live = cachedFor(LIST_KEPT_MS, () => this.#readLive());

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /**
   * Creates a stream for a holder of the platform's token. A repeated request makes a new password, because
   * the first one is not stored.
   * @throws NoRadioError; UnavailableError without a token or a chain; ForbiddenError; NotFoundError for an
   * agent of another user; ConflictError beyond `MAX_STREAMS`
   */
  async create(
    by: Requester,
    wanted: NewStream,
  ): Promise<{ readonly stream: RadioStream; readonly sourcePassword: string }> {
    this.#running();
    const { agentId = null, description = null, format, genre = null, title } = wanted;
    const { actor: userId, idempotencyId: id, tenant } = by;
    await this.#requireToken(tenant, userId);
    const sourcePassword = randomBytes(PASSWORD_BYTES).toString('base64url');
    await tenant.transaction(async (db) => {
      await db.lock(`radio-streams-of:${userId}`);
      if (agentId !== null) await requireAgents(db, userId, [agentId]);
      const [counted] = await db.query<{ current: number }>(
        'SELECT count(*)::integer AS current FROM radio_streams WHERE user_id = $userId AND id <> $id',
        { userId, id },
      );
      const current = counted?.current ?? 0;
      if (current >= MAX_STREAMS) {
        const facts = { current, limit: MAX_STREAMS };
        throw new ConflictError('Too many streams: delete one', 'STREAM_LIMIT_REACHED', facts);
      }
      await db.query(
        `INSERT INTO radio_streams (id, user_id, agent_id, title, description, genre, format, password_hash,
                                    created_at)
         VALUES ($id, $userId, $agentId, $title, $description, $genre, $format, $hash, date_trunc('milliseconds', now()))
         ON CONFLICT (id) DO UPDATE SET password_hash = EXCLUDED.password_hash`,
        {
          id,
          userId,
          agentId,
          title,
          description,
          genre,
          format,
          hash: passwordHash(sourcePassword),
        },
      );
      await audit(by, db, 'radio.create', id);
    });
    return { stream: await this.get(tenant, id), sourcePassword };
  }

  /** Returns a user's stream. @throws NoRadioError, NotFoundError */
  async get(tenant: TenantDatabase, id: string): Promise<RadioStream> {
    const { settings, sources } = this.#running();
    const [row] = await tenant.query<StreamRow>(
      `SELECT ${COLUMNS} FROM radio_streams WHERE id = $id AND user_id = $userId`,
      { id, userId: tenant.userId ?? '' },
    );
    if (!row) throw notFound();
    return streamOf(row, settings, await sources.known());
  }

  /** Lists a user's streams, newest first, after a previous page's `next`. @throws NoRadioError */
  async list(
    tenant: TenantDatabase,
    { after, limit }: { readonly limit: number; readonly after?: readonly string[] | undefined },
  ): Promise<Page<RadioStream>> {
    const { settings, sources } = this.#running();
    const rows = await tenant.query<StreamRow>(
      `SELECT ${COLUMNS} FROM radio_streams
        WHERE user_id = $userId
          ${after === undefined ? '' : 'AND (created_at, id) < ($at::timestamptz, $id)'}
        ORDER BY created_at DESC, id DESC LIMIT $most`,
      {
        userId: tenant.userId ?? '',
        ...(after && { at: after[0], id: after[1] }),
        most: limit + 1,
      },
    );
    const known = await sources.known();
    const items = rows.slice(0, limit).map((row) => streamOf(row, settings, known));
    const last = rows.length > limit ? items.at(-1) : undefined;
    return { items, next: last && [last.createdAt.toISOString(), last.id] };
  }

  /** Lists the live streams of all users, latest first. @throws NoRadioError, IcecastAwayError */
  async live(): Promise<readonly RadioStream[]> {
    this.#running();
    return this.#live();
  }

  /**
   * Removes a stream and ends its source; if Icecast does not answer, the worker's next observation ends the source.
   * @throws NoRadioError, NotFoundError
   */
  async remove(by: Requester, id: string): Promise<void> {
    const { icecast } = this.#running();
    const { actor: userId, tenant } = by;
    const format = await tenant.transaction(async (db) => {
      const [removed] = await db.query<{ format: RadioFormat }>(
        'DELETE FROM radio_streams WHERE id = $id AND user_id = $userId RETURNING format',
        { id, userId },
      );
      if (!removed) throw notFound();
      await audit(by, db, 'radio.remove', id);
      return removed.format;
    });
    await endSource(icecast, mountOf({ id, format }));
  }

  async #readLive(): Promise<readonly RadioStream[]> {
    const { settings, sources } = this.#running();
    const byMount = await sources.all();
    const ids = [...byMount.keys()].flatMap((mount) => readMount(mount)?.id ?? []);
    const rows =
      ids.length === 0
        ? []
        : await this.#parts.database
            .asPlatform()
            .query<StreamRow>(`SELECT ${COLUMNS} FROM radio_streams WHERE id = ANY ($ids)`, {
              ids,
            });
    return rows
      .map((row) => streamOf(row, settings, byMount))
      .filter(({ status }) => status === 'live')
      .sort((a, b) => Number(b.startedAt) - Number(a.startedAt) || (a.id < b.id ? -1 : 1));
  }

  /** @throws NoRadioError */
  #running(): RadioEngine {
    const { engine } = this.#parts;
    if (!engine) throw new NoRadioError();
    return engine;
  }

  async #requireToken(tenant: TenantDatabase, userId: string): Promise<void> {
    try {
      const { verified } = await checkGate(this.#parts.gate, tenant, undefined, userId);
      if (!verified) {
        throw new ForbiddenError(
          "None of your linked wallets holds enough of the platform's token",
        );
      }
    } catch (error) {
      if (!(error instanceof NoTokenError)) throw error;
      throw new UnavailableError(
        'Streams require the platform token, but the operator has not set PLATFORM_TOKEN_ADDRESS',
        { cause: error },
      );
    }
  }
}

function streamOf(
  { sourceStartedAt, ...row }: StreamRow,
  { publicUrl }: IcecastSettings,
  byMount: ReadonlyMap<string, Source> | undefined,
): RadioStream {
  const mount = mountOf(row);
  const source = byMount?.get(mount);
  const isMeasured = source?.startedAt.getTime() === sourceStartedAt?.getTime();
  return {
    ...row,
    status: source ? 'live' : byMount ? 'offline' : 'unknown',
    bitrate: source && isMeasured ? row.bitrate : null,
    listeners: source?.listeners ?? (byMount ? 0 : null),
    peakListeners: Math.max(row.peakListeners, source?.peakListeners ?? 0),
    nowPlaying: source?.title ?? null,
    startedAt: source?.startedAt ?? null,
    listenUrl: `${publicUrl}${mount}`,
  };
}

const audit = (
  { actor, requestId }: Requester,
  db: Parameters<typeof recordAudit>[0],
  action: string,
  subject: string,
) => recordAudit(db, { actor, userId: actor, action, subject, requestId });

const notFound = () => new NotFoundError('Stream not found');
