import * as z from 'zod';
import { Batcher } from '../lib/batcher.js';
import type { Database } from '../platform/database/database.js';
import type { ProviderWebhook, WebhookHeaders } from '../platform/webhooks/provider-webhook.js';

/** Events of a statement: commits that notify wait for each other, and each statement is one. */
const MAX_BATCH = 200;

const prediction = z.object({ id: z.string().min(1).max(128), status: z.string() });

/** The outcome of an event; `unknown` if no video waits for it. */
export type VideoEventOutcome = 'handled' | 'duplicate' | 'unknown' | 'event';

interface VideoEvent {
  readonly eventId: string;
  readonly predictionId: string;
}

/** Takes events, each once, and makes the runs of their videos look at the provider. */
const TAKE = `
  WITH events AS (
    SELECT event_id, prediction_id
      FROM jsonb_to_recordset($rows::jsonb) AS e (event_id text, prediction_id text)
  ), fresh AS (
    -- In order: two processes with the same events would otherwise wait for each other.
    INSERT INTO provider_webhooks (kind, id)
      SELECT 'video', event_id FROM events ORDER BY event_id COLLATE "C"
      ON CONFLICT DO NOTHING RETURNING id
  ), waiting AS (
    SELECT v.id, v.prediction_id FROM videos v
     WHERE v.prediction_id IN (SELECT prediction_id FROM events) AND v.settled_at IS NULL
     ORDER BY v.id FOR UPDATE
  ), hinted AS (
    UPDATE videos SET hinted = true, due_at = now()
     WHERE id IN (
       SELECT w.id FROM waiting w JOIN events e USING (prediction_id) JOIN fresh f ON f.id = e.event_id))
  SELECT e.event_id AS "eventId",
         CASE WHEN f.id IS NULL THEN 'duplicate' WHEN w.id IS NULL THEN 'unknown' ELSE 'handled' END AS outcome
    FROM events e LEFT JOIN fresh f ON f.id = e.event_id LEFT JOIN waiting w USING (prediction_id)`;

/** Receives the events of the provider of videos. An event is a hint: the run reads the prediction itself. */
export class VideoEvents {
  readonly #database: Database;
  readonly #webhook: ProviderWebhook;
  readonly #batches = new Batcher<VideoEvent, VideoEventOutcome>(
    (events) => this.#take(events),
    MAX_BATCH,
  );

  constructor(database: Database, webhook: ProviderWebhook) {
    this.#database = database;
    this.#webhook = webhook;
  }

  /** Verifies an event and stores its hint. @throws BadRequestError, UnavailableError */
  async receive(body: Buffer, headers: WebhookHeaders): Promise<VideoEventOutcome> {
    const { eventId, payload } = this.#webhook.verify(body, headers);
    const read = prediction.safeParse(payload).data;
    return read ? this.#batches.add({ eventId, predictionId: read.id }) : 'event';
  }

  async #take(events: readonly VideoEvent[]): Promise<readonly VideoEventOutcome[]> {
    const byId = new Map(events.map((event) => [event.eventId, event.predictionId]));
    const rows = [...byId].map(([event_id, prediction_id]) => ({ event_id, prediction_id }));
    const taken = await this.#database
      .asPlatform()
      .query<{ eventId: string; outcome: VideoEventOutcome }>(TAKE, { rows: JSON.stringify(rows) });
    const outcomes = new Map(taken.map(({ eventId, outcome }) => [eventId, outcome]));
    return events.map(({ eventId }) => {
      const outcome = outcomes.get(eventId) ?? 'duplicate';
      // The second event of the batch with this id.
      outcomes.delete(eventId);
      return outcome;
    });
  }
}
