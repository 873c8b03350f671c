import * as z from 'zod';
import { Batcher } from '../lib/batcher.js';
import type { Database } from '../platform/database/database.js';
import type { ProviderWebhook, WebhookHeaders } from '../platform/webhooks/provider-webhook.js';

/**
 * Maximum number of events in one statement. Larger batches need fewer commits, and commits with a
 * notification wait for each other.
 */
const MAX_BATCH = 200;

const prediction = z.object({ id: z.string().min(1).max(128), status: z.string() });

/** Why an event has no effect; `unknown` if no video waits for it. */
type VideoReason = 'duplicate' | 'unknown' | 'event';

interface VideoEvent {
  readonly eventId: string;
  readonly predictionId: string;
}

/** Accepts events, each once, and makes the runs of their videos check the predictions. */
const TAKE = `
  WITH fresh AS (
    -- In order: two processes with the same events would otherwise wait for each other.
    INSERT INTO provider_webhooks (kind, id)
      SELECT 'video', id FROM unnest($eventIds::text[]) AS id ORDER BY id COLLATE "C"
      ON CONFLICT DO NOTHING RETURNING id
  ), reported AS MATERIALIZED (
    SELECT id, prediction_id, settled_at FROM videos WHERE prediction_id = ANY ($predictionIds)
  ), hinted AS (
    UPDATE videos v SET hinted = true, due_at = now()
      FROM reported r
      JOIN unnest($eventIds::text[], $predictionIds::text[]) AS e (event_id, prediction_id) USING (prediction_id)
      JOIN fresh f ON f.id = e.event_id
     WHERE v.id = r.id AND r.settled_at IS NULL
    RETURNING v.prediction_id)
  SELECT ARRAY(SELECT id FROM fresh) AS fresh, ARRAY(SELECT prediction_id FROM hinted) AS hinted`;

/** Receives the events of the video provider. An event is a hint: the run reads the prediction itself. */
export class VideoEvents {
  readonly #database: Database;
  readonly #webhook: ProviderWebhook;
  readonly #batches = new Batcher<VideoEvent, VideoReason | undefined>(
    (events) => this.#take(events),
    MAX_BATCH,
  );

  constructor(database: Database, webhook: ProviderWebhook) {
    this.#database = database;
    this.#webhook = webhook;
  }

  /** Verifies an event and stores its hint, or returns why it has no effect. @throws BadRequestError, UnavailableError */
  async receive(body: Buffer, headers: WebhookHeaders): Promise<VideoReason | undefined> {
    const { eventId, payload } = this.#webhook.verify(body, headers);
    const read = prediction.safeParse(payload).data;
    return read ? this.#batches.add({ eventId, predictionId: read.id }) : 'event';
  }

  async #take(events: readonly VideoEvent[]): Promise<readonly (VideoReason | undefined)[]> {
    const [taken] = await this.#database.asPlatform().query<{
      fresh: readonly string[];
      hinted: readonly string[];
    }>(TAKE, {
      eventIds: events.map(({ eventId }) => eventId),
      predictionIds: events.map(({ predictionId }) => predictionId),
    });
    const fresh = new Set(taken?.fresh);
    const hinted = new Set(taken?.hinted);
    return events.map(({ eventId, predictionId }) => {
      // A second event of the batch with this id finds the id deleted.
      if (!fresh.delete(eventId)) return 'duplicate';
      return hinted.has(predictionId) ? undefined : 'unknown';
    });
  }
}
