import { randomUUID } from 'node:crypto';
import { Batcher } from '../lib/batcher.js';
import type { Database } from '../platform/database/database.js';
import type { Processor } from './processor.js';
import { readEvent, type ProcessorEvent } from './read-event.js';

/**
 * Maximum number of events in one statement. Larger batches need fewer commits, and commits with a
 * notification wait for each other.
 */
const MAX_BATCH = 200;

/** Receives the payment processor's events, and stores each once. */
export class ProcessorEvents {
  readonly #database: Database;
  readonly #processor: Pick<Processor, 'verify'>;
  readonly #batches = new Batcher<ProcessorEvent, void>(
    (events) => this.#insert(events),
    MAX_BATCH,
  );

  constructor(database: Database, processor: Pick<Processor, 'verify'>) {
    this.#database = database;
    this.#processor = processor;
  }

  /** Verifies an event and stores it, if it needs an action. @throws BadRequestError, ProcessorError */
  async receive(body: Buffer, signature: string | undefined): Promise<void> {
    await this.store(await this.#processor.verify(body, signature));
  }

  /** Stores an event of the processor, if it needs an action. */
  async store(json: unknown): Promise<void> {
    const event = readEvent(json);
    if (event) await this.#batches.add(event);
  }

  async #insert(events: readonly ProcessorEvent[]): Promise<readonly void[]> {
    const rows = events.map(({ eventId, fact, happenedAt, paymentIntent, type }) => ({
      id: randomUUID(),
      event_id: eventId,
      type,
      payment_intent: paymentIntent,
      fact,
      happened_at: happenedAt,
    }));
    // In order: two processes with the same events would otherwise wait for each other.
    await this.#database.asPlatform().query(
      `INSERT INTO processor_events (id, event_id, type, payment_intent, fact, happened_at)
       SELECT id, event_id, type, payment_intent, fact, happened_at
         FROM jsonb_to_recordset($rows::jsonb) AS e (id text, event_id text, type text,
                payment_intent text, fact jsonb, happened_at timestamptz)
        ORDER BY event_id COLLATE "C" ON CONFLICT DO NOTHING`,
      { rows: JSON.stringify(rows) },
    );
    return events.map(() => undefined);
  }
}
