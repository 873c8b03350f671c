import type { FileHandle } from 'node:fs/promises';
import { entitled } from '../accounts/accounts/entitlement.js';
import { requireAgents, type Page } from '../agents/agents/agents.js';
import { NotFoundError, TooManyRequestsError, UnavailableError } from '../lib/errors.js';
import { secondsOfDayLeft, utcDay } from '../lib/utc-day.js';
import { NO_AGENT, requestNotification } from '../notifications/outbox.js';
import { recordAudit } from '../platform/audit/audit.js';
import type { Requester } from '../platform/audit/requester.js';
import type { Database, Statements, TenantDatabase } from '../platform/database/database.js';
import type { Plan } from '../types/plans.js';
import type { AspectRatio, VideoStatus } from '../types/videos.js';
import type { MediaFiles } from './media-files.js';
import type { VideoSettings } from './settings.js';

/** Maximum number of unfinished videos of a user. */
export const MAX_IN_FLIGHT = 3;

/** Maximum number of videos of a user on a UTC day. */
export const MAX_A_DAY = 20;

const RETRY_AFTER_S = 60;

/** The owner of a video, with the current plan. */
export interface VideoOwner {
  readonly userId: string;
  readonly isAdmin: boolean;
  readonly plan: Plan | undefined;
}

export interface NewVideo {
  readonly prompt: string;
  /** Seconds. */
  readonly duration?: number | undefined;
  readonly aspectRatio?: AspectRatio | undefined;
  readonly agentId?: string | undefined;
}

export interface Video {
  readonly id: string;
  readonly agentId: string | null;
  readonly prompt: string;
  readonly status: VideoStatus;
  readonly hasFile: boolean;
  /** Bytes. */
  readonly size: number | null;
  readonly contentType: string | null;
  readonly error: string | null;
  readonly createdAt: Date;
  readonly completedAt: Date | null;
}

/** A file that is open; the caller closes it. */
export interface VideoFile {
  readonly handle: FileHandle;
  readonly size: number;
  readonly contentType: string;
}

const COLUMNS = `id, agent_id AS "agentId", prompt, status, has_file AND status = 'completed' AS "hasFile",
  CASE status WHEN 'completed' THEN size END::float8 AS size, content_type AS "contentType", error,
  created_at AS "createdAt", completed_at AS "completedAt"`;

interface Options {
  readonly database: Database;
  readonly files: MediaFiles;
  readonly settings: VideoSettings;
}

/** The videos of users; runs of `generateVideo` make them. */
export class Videos {
  readonly #database: Database;
  readonly #files: MediaFiles;
  readonly #settings: VideoSettings;

  constructor({ database, files, settings }: Options) {
    this.#database = database;
    this.#files = files;
    this.#settings = settings;
  }

  /**
   * Stores a video, whose run starts at once. The same request again returns the first video.
   * @throws UnavailableError without a provider, and beyond the videos of a day by all users; PaymentRequiredError
   * without a plan; NotFoundError for an agent that is not the owner's; TooManyRequestsError
   */
  async create(by: Requester, owner: VideoOwner, wanted: NewVideo): Promise<Video> {
    this.#requireProvider();
    entitled(owner.userId, owner.isAdmin, owner.plan);
    const id = by.idempotencyId;
    const { userId } = owner;
    // As the platform, because the day's count includes all users.
    const isStored = await this.#database.asPlatform().transaction(async (db) => {
      await db.lock(`videos-of:${userId}`);
      const [earlier] = await db.query('SELECT FROM videos WHERE id = $id', { id });
      if (earlier) return true;
      if (wanted.agentId !== undefined) await requireAgents(db, userId, [wanted.agentId]);
      await requirePlace(db, userId);
      if (!(await this.#takePlaceOfDay(db))) return false;
      const { agentId = null, aspectRatio = null, duration = null, prompt } = wanted;
      await db.query(
        `INSERT INTO videos (id, user_id, agent_id, prompt, duration, aspect_ratio, created_at)
         VALUES ($id, $userId, $agentId, $prompt, $duration, $aspectRatio, date_trunc('milliseconds', now()))`,
        { id, userId, agentId, prompt, duration, aspectRatio },
      );
      const { actor, requestId } = by;
      await recordAudit(db, { actor, userId, action: 'video.create', subject: id, requestId });
      return true;
    });
    if (isStored) return getVideo(by.tenant, id);
    throw new UnavailableError(
      'The limit of videos for today is reached: retry after midnight UTC',
    );
  }

  /** Opens the file of a video. @throws NotFoundError if the video has none */
  async open(tenant: TenantDatabase, id: string): Promise<VideoFile> {
    const { contentType, hasFile } = await getVideo(tenant, id);
    const handle = hasFile && contentType !== null ? await this.#files.open(id) : undefined;
    if (!handle || contentType === null) throw new NotFoundError('The video has no file');
    try {
      return { handle, contentType, size: (await handle.stat()).size };
    } catch (error) {
      await handle.close();
      throw error;
    }
  }

  #requireProvider(): void {
    const { apiToken, model } = this.#settings;
    if (apiToken !== undefined && model !== undefined) return;
    const missing = apiToken === undefined ? 'VIDEO_API_TOKEN' : 'VIDEO_MODEL';
    throw new UnavailableError(`Videos are not available: ${missing} is not set`);
  }

  /** Counts a video of the UTC day, and notifies operators of the last one. Returns false if there is no place. */
  async #takePlaceOfDay(db: Statements): Promise<boolean> {
    const { dailyTotal } = this.#settings;
    const day = utcDay();
    await db.query("DELETE FROM video_days WHERE id < to_char($day::date - 1, 'YYYY-MM-DD')", {
      day,
    });
    const [taken] = await db.query<{ count: number }>(
      `INSERT INTO video_days AS d (id, count) VALUES ($day, 1)
       ON CONFLICT (id) DO UPDATE SET count = d.count + 1 WHERE d.count < $dailyTotal
       RETURNING count`,
      { day, dailyTotal },
    );
    if (taken && taken.count < dailyTotal) return true;
    await requestNotification(db, {
      id: `videos-${day}`,
      agent: NO_AGENT,
      event: 'videos_used_up',
      day,
      limit: dailyTotal,
    });
    return taken !== undefined;
  }
}

/** Returns a video. @throws NotFoundError */
export async function getVideo(tenant: TenantDatabase, id: string): Promise<Video> {
  const [video] = await tenant.query<Video>(`SELECT ${COLUMNS} FROM videos WHERE id = $id`, { id });
  if (!video) throw new NotFoundError('Video not found');
  return video;
}

/** Lists a user's videos, newest first, after a previous page's `next`. */
export async function listVideos(
  tenant: TenantDatabase,
  userId: string,
  { after, limit }: { readonly limit: number; readonly after?: readonly string[] | undefined },
): Promise<Page<Video>> {
  const rows = await tenant.query<Video>(
    `SELECT ${COLUMNS} FROM videos
      WHERE user_id = $userId
        ${after === undefined ? '' : 'AND (created_at, id) < ($at::timestamptz, $id)'}
      ORDER BY created_at DESC, id DESC LIMIT $most`,
    { userId, ...(after && { at: after[0], id: after[1] }), most: limit + 1 },
  );
  const items = rows.slice(0, limit);
  const last = rows.length > limit ? items.at(-1) : undefined;
  return { items, next: last && [last.createdAt.toISOString(), last.id] };
}

async function requirePlace(db: Statements, userId: string): Promise<void> {
  const [counts] = await db.query<{ open: number; today: number }>(
    `SELECT (SELECT count(*)::int FROM videos WHERE user_id = $userId AND settled_at IS NULL) AS open,
            (SELECT count(*)::int FROM videos
              WHERE user_id = $userId AND created_at >= date_trunc('day', now(), 'UTC')) AS today`,
    { userId },
  );
  const { open = 0, today = 0 } = counts ?? {};
  if (open >= MAX_IN_FLIGHT) {
    throw new TooManyRequestsError(
      'Too many of your videos are under way: retry when one has ended',
      { max: MAX_IN_FLIGHT, resetS: RETRY_AFTER_S },
      'VIDEO_LIMIT_REACHED',
      { current: open, limit: MAX_IN_FLIGHT },
    );
  }
  if (today >= MAX_A_DAY) {
    throw new TooManyRequestsError(
      'You have made too many videos today: retry after midnight UTC',
      { max: MAX_A_DAY, resetS: secondsOfDayLeft() },
      'VIDEO_LIMIT_REACHED',
      { current: today, limit: MAX_A_DAY },
    );
  }
}

/**
 * Cancels a user's unfinished videos, and deletes the files of the others. Returns how many are still under
 * way; their runs end soon, and cancel what the provider works on.
 */
export async function removeVideosOf(
  database: Database,
  files: MediaFiles,
  userId: string,
): Promise<number> {
  const platform = database.asPlatform();
  await platform.query(
    `UPDATE videos SET status = 'cancelled', error = 'The account is being deleted', due_at = now()
      WHERE user_id = $userId AND settled_at IS NULL AND status <> 'cancelled'`,
    { userId },
  );
  const stored = await platform.query<{ id: string }>(
    'SELECT id FROM videos WHERE user_id = $userId AND settled_at IS NOT NULL AND has_file',
    { userId },
  );
  for (const { id } of stored) {
    await files.remove(id);
    await platform.query('UPDATE videos SET has_file = false WHERE id = $id', { id });
  }
  const [left] = await platform.query<{ count: number }>(
    'SELECT count(*)::int AS count FROM videos WHERE user_id = $userId AND settled_at IS NULL',
    { userId },
  );
  return left?.count ?? 0;
}
