import { randomUUID } from 'node:crypto';
import type { Database } from '../platform/database/database.js';
import type { Processor } from './processor.js';
import { readEvent } from './read-event.js';

/** Receives the payment processor's events, and stores each once. */
export class ProcessorEvents {
  readonly #database: Database;
  readonly #processor: Pick<Processor, 'verify'>;

  constructor(database: Database, processor: Pick<Processor, 'verify'>) {
    this.#database = database;
    this.#processor = processor;
  }

  /** Verifies an event and stores what it says, if it needs an action. @throws BadRequestError, ProcessorError */
  async receive(body: Buffer, signature: string | undefined): Promise<void> {
    const event = readEvent(await this.#processor.verify(body, signature));
    if (!event) return;
    const { eventId, fact, happenedAt, paymentIntent, type } = event;
    await this.#database.asPlatform().query(
      `INSERT INTO processor_events (id, event_id, type, payment_intent, fact, happened_at)
       VALUES ($id, $eventId, $type, $paymentIntent, $fact, $happenedAt) ON CONFLICT DO NOTHING`,
      {
        id: randomUUID(),
        eventId,
        type,
        paymentIntent,
        fact: JSON.stringify(fact),
        happenedAt,
      },
    );
  }
}
