import type { Database, Statements } from '../platform/database/database.js';
import type { OpenVideo, VideoEnding, VideoStatus } from '../types/videos.js';
import type { MediaFiles } from './media-files.js';
import type { VideoOrder } from './video-provider.js';

/** Maximum number of minutes for a video, from the request to the provider. */
const MAX_MINUTES = 30;

/** Files that are considered at a time for deletion. */
const BATCH = 100;

const ENDINGS: Readonly<Record<VideoEnding, readonly [VideoStatus, string]>> = {
  unreached: ['failed', 'The provider could not be reached, or did not accept the video'],
  late: ['cancelled', `The video took longer than ${MAX_MINUTES} minutes`],
  unfetched: ['failed', 'The file could not be fetched from the provider'],
};

/** Files that are being written occupy all places: the reservation may be retried. */
class MediaFullError extends Error {
  override readonly name = 'MediaFullError';

  constructor() {
    super('The folder of media is full of files that are being written');
  }
}

interface Options {
  readonly database: Database;
  readonly files: MediaFiles;
  /** Maximum bytes of all files. */
  readonly limit: number;
}

/** The rows and files of videos, for their runs. */
export class VideoStore {
  readonly #database: Database;
  readonly #files: MediaFiles;
  readonly #limit: number;

  constructor({ database, files, limit }: Options) {
    this.#database = database;
    this.#files = files;
    this.#limit = limit;
  }

  /**
   * Reports whether a run of the video has to check at once: the provider has reported, or the video is
   * cancelled.
   */
  async needsCheck(id: string): Promise<boolean> {
    const [row] = await this.#query<{ isDue: boolean }>(
      `SELECT hinted OR status = 'cancelled' AS "isDue" FROM videos WHERE id = $id`,
      { id },
    );
    return row?.isDue ?? false;
  }

  /** Returns a video whose run has work left. */
  async open(id: string): Promise<OpenVideo | undefined> {
    const [row] = await this.#query<OpenVideo>(
      `SELECT prediction_id IS NULL AS "isNew",
              greatest(0, extract(epoch FROM coalesce(asked_at, now()) - now()
                                  + interval '${MAX_MINUTES} minutes') * 1000)::integer AS "leftMs"
         FROM videos WHERE id = $id AND settled_at IS NULL`,
      { id },
    );
    return row;
  }

  /**
   * Marks a video as requested, before the provider is called, and returns the order. For a video that was marked
   * before, returns its prediction, or `lost` without one; undefined if the video has ended.
   */
  async claim(id: string): Promise<VideoOrder | { predictionId: string } | 'lost' | undefined> {
    const [order] = await this.#query<VideoOrder>(
      `UPDATE videos SET status = 'processing', asked_at = now()
        WHERE id = $id AND status = 'queued' AND asked_at IS NULL
        RETURNING prompt, duration, aspect_ratio AS "aspectRatio"`,
      { id },
    );
    if (order) return order;
    const [marked] = await this.#query<{ predictionId: string | null }>(
      `SELECT prediction_id AS "predictionId" FROM videos
        WHERE id = $id AND settled_at IS NULL AND asked_at IS NOT NULL`,
      { id },
    );
    if (!marked) return undefined;
    const { predictionId } = marked;
    return predictionId === null ? 'lost' : { predictionId };
  }

  /** Withdraws a claim: the provider has certainly received nothing. */
  async release(id: string): Promise<void> {
    await this.#query(
      `UPDATE videos SET asked_at = NULL, status = CASE status WHEN 'processing' THEN 'queued' ELSE status END
        WHERE id = $id AND prediction_id IS NULL AND settled_at IS NULL`,
      { id },
    );
  }

  /** Stores the provider's id of the prediction. */
  async note(id: string, predictionId: string): Promise<void> {
    await this.#query(
      `UPDATE videos SET prediction_id = $predictionId
        WHERE id = $id AND prediction_id IS NULL AND settled_at IS NULL`,
      { id, predictionId },
    );
  }

  /** Returns the prediction of an open video, and clears the mark of its last report. */
  async openPrediction(
    id: string,
  ): Promise<{ predictionId: string; status: VideoStatus } | undefined> {
    const [row] = await this.#query<{ predictionId: string | null; status: VideoStatus }>(
      `UPDATE videos SET hinted = false WHERE id = $id AND settled_at IS NULL
        RETURNING prediction_id AS "predictionId", status`,
      { id },
    );
    if (!row || row.predictionId === null) return undefined;
    return { status: row.status, predictionId: row.predictionId };
  }

  /**
   * Reserves bytes for the file of a video; deletes the oldest files for it. Returns false if the video has ended.
   * @throws MediaFullError
   */
  reserve(id: string, bytes: number): Promise<boolean> {
    return this.#database.asPlatform().transaction(async (db) => {
      await db.lock('media');
      const reserved = await db.query(
        `UPDATE videos SET status = 'uploading', has_file = true, size = $bytes
          WHERE id = $id AND settled_at IS NULL AND status IN ('processing', 'uploading')
          RETURNING id`,
        { id, bytes },
      );
      if (reserved.length === 0) return false;
      await this.#makePlace(db);
      return true;
    });
  }

  /** Ends a video with its file. Returns false, and removes the file, if the video has ended otherwise. */
  async complete(id: string, file: { bytes: number; contentType: string }): Promise<boolean> {
    const [completed] = await this.#query(
      `UPDATE videos SET status = 'completed', size = $bytes, content_type = $contentType, error = NULL,
              completed_at = now(), settled_at = now()
        WHERE id = $id AND status = 'uploading' AND settled_at IS NULL RETURNING id`,
      { id, ...file },
    );
    if (completed) return true;
    const [other] = await this.#query(
      `SELECT FROM videos WHERE id = $id AND status = 'completed' AND has_file`,
      { id },
    );
    // Another attempt may have completed it.
    if (!other) await this.#files.remove(id);
    return other !== undefined;
  }

  /** Ends a video without a file, unless it has ended; `settle` removes what was written. */
  async end(id: string, status: VideoStatus, error: string): Promise<void> {
    await this.#query(
      `UPDATE videos SET status = $status, error = $error, has_file = false, size = NULL,
              completed_at = coalesce(completed_at, now()), settled_at = now()
        WHERE id = $id AND settled_at IS NULL`,
      { id, status, error },
    );
  }

  /**
   * Ends the run of a video, and the video unless a step has; removes the file of one that is not completed. Returns
   * its final status, or undefined without the row.
   */
  async settle(id: string, ending?: VideoEnding): Promise<VideoStatus | undefined> {
    const status = await this.#settled(id, ending);
    // A step that failed may have left a file or a part of one, also of an account that is deleted by now.
    if (status !== 'completed') {
      await this.#files.remove(id);
      await this.#files.removeAbandoned(id);
    }
    return status;
  }

  async #settled(id: string, ending?: VideoEnding): Promise<VideoStatus | undefined> {
    const [status, error] = ENDINGS[ending ?? 'unreached'];
    // A cancellation keeps its own reason.
    const [settled] = await this.#query<{ status: VideoStatus }>(
      `UPDATE videos SET error = CASE status WHEN 'cancelled' THEN error ELSE $error END,
              status = CASE status WHEN 'cancelled' THEN status ELSE $status END,
              has_file = false, size = NULL, completed_at = coalesce(completed_at, now()),
              settled_at = now()
        WHERE id = $id AND settled_at IS NULL RETURNING status`,
      { id, status, error },
    );
    if (settled) return settled.status;
    const [row] = await this.#query<{ status: VideoStatus }>(
      'SELECT status FROM videos WHERE id = $id',
      { id },
    );
    return row?.status;
  }

  /** Deletes the oldest files until all fit. */
  async #makePlace(db: Statements): Promise<void> {
    for (;;) {
      const [sum] = await db.query<{ bytes: string }>(
        'SELECT coalesce(sum(size), 0) AS bytes FROM videos WHERE has_file',
      );
      let excess = Number(sum?.bytes ?? 0) - this.#limit;
      if (excess <= 0) return;
      const oldest = await db.query<{ id: string; size: string }>(
        `SELECT id, size FROM videos WHERE has_file AND status = 'completed'
          ORDER BY completed_at, id LIMIT ${BATCH}`,
      );
      if (oldest.length === 0) throw new MediaFullError();
      const gone: string[] = [];
      for (const { id, size } of oldest) {
        if (excess <= 0) break;
        // Before the commit: after a crash the row has no file, which readers see, and is deleted again.
        await this.#files.remove(id);
        gone.push(id);
        excess -= Number(size);
      }
      await db.query('UPDATE videos SET has_file = false WHERE id = ANY ($gone)', { gone });
    }
  }

  #query<Row extends object>(sql: string, values: Readonly<Record<string, unknown>>) {
    return this.#database.asPlatform().query<Row>(sql, values);
  }
}
