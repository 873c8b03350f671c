import { poll } from '../../dev/poll.js';
import type { PaymentProcessor, StandInEvent } from '../../dev/billing/payment-processor.js';
import type { CarefulClient } from './careful-client.js';
import type { KillAtStep } from './kill-at-step.js';
import type { MoneyStep } from './money-plan.js';

const WEBHOOK = '/api/wallet/top-up';

const TIMEOUT_MS = 180_000;
const PAUSE_MS = 250;

/** Reports of a payment processor that keeps no order and repeats each event. */
export class ProcessorReports {
  /** Ids of the events that were answered with 200. */
  readonly received: string[] = [];
  readonly #site: { readonly web: CarefulClient; readonly processor: PaymentProcessor };
  readonly #kill: KillAtStep;
  readonly #key: () => string;

  constructor(
    site: { readonly web: CarefulClient; readonly processor: PaymentProcessor },
    round: { readonly kill: KillAtStep; readonly key: () => string },
  ) {
    this.#site = site;
    this.#kill = round.kill;
    this.#key = round.key;
  }

  /** Returns the events that the processor records during a synchronous call. */
  eventsOf(happen: () => void): StandInEvent[] {
    const { events } = this.#site.processor;
    const before = events.length;
    happen();
    return events.slice(before);
  }

  /** Delivers events until all are answered with 200. @param step begins with each answer. */
  async report(events: readonly StandInEvent[], step: MoneyStep): Promise<void> {
    await Promise.all([...events, ...events].map((event) => this.#deliver(event, step)));
  }

  async #deliver(event: StandInEvent, step: MoneyStep): Promise<void> {
    const { processor, web } = this.#site;
    let reported = '';
    const isReceived = await poll(
      async () => {
        void this.#kill.begins('webhook');
        const { headers } = processor.signed(event);
        const { status, text } = await web.once('POST', WEBHOOK, this.#key(), event, headers);
        reported = `${status} ${text}`;
        return status === 200 || undefined;
      },
      { timeoutMs: TIMEOUT_MS, everyMs: PAUSE_MS },
    );
    if (!isReceived) throw new Error(`the event ${event.id} was not received: ${reported}`);
    this.received.push(event.id);
    void this.#kill.begins(step);
  }
}
