import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { poll } from '../../dev/poll.js';
import type { Database } from '../../src/platform/database/database.js';
import type { BusReceiver } from './bus-receiver.js';
import type { CarefulClient } from './careful-client.js';
import type { KillAtStep } from './kill-at-step.js';
import type { MessageFate, MoneyPlan } from './money-plan.js';

const BUS = '/api/underground/bus';

const TIMEOUT_MS = 180_000;
const PAUSE_MS = 250;

/** The services that messages use and the check reads. */
export interface MessageSite {
  readonly api: CarefulClient;
  readonly receiver: BusReceiver;
  readonly database: Database;
  /** Two agents with wallets that the platform keeps, and with webhooks at the receiver. */
  readonly wallets: readonly [{ readonly agentId: string }, { readonly agentId: string }];
}

interface Sent {
  readonly messageId: string;
  readonly fate: MessageFate;
}

interface StoredMessage {
  readonly status: string;
  readonly step: string | null;
  readonly attempts: readonly object[];
}

/** Messages of one round between two agents, to a receiver that accepts, refuses or misses them. */
export class SentMessages {
  readonly #site: MessageSite;
  readonly #plan: MoneyPlan['messages'];
  readonly #kill: KillAtStep;
  readonly #key: () => string;
  /** Messages that were answered with 200. */
  readonly #sent: Sent[] = [];
  /** Messages that the receiver still misses once. */
  readonly #missing = new Set<string>();
  readonly #gone = new Set<string>();

  constructor(
    site: MessageSite,
    plan: MoneyPlan['messages'],
    round: { readonly kill: KillAtStep; readonly key: () => string },
  ) {
    this.#site = site;
    this.#plan = plan;
    this.#kill = round.kill;
    this.#key = round.key;
  }

  async go(): Promise<void> {
    this.#site.receiver.answer = async (messageId) => {
      // Answered after the restart: the worker that sent the message never gets the answer.
      await this.#kill.begins('delivery')?.catch(() => undefined);
      if (this.#missing.delete(messageId)) return 503;
      return this.#gone.has(messageId) ? 410 : 200;
    };
    await Promise.all(
      this.#plan.map(async ({ afterMs, fate, from }) => {
        await delay(afterMs);
        await this.#send(fate, from);
      }),
    );
  }

  /** Sends a message until it is accepted, and once more. */
  async #send(fate: MessageFate, from: 0 | 1): Promise<void> {
    const messageId = randomUUID();
    if (fate === 'missed once') this.#missing.add(messageId);
    if (fate === 'gone') this.#gone.add(messageId);
    let reported = '';
    const attempt = async () => {
      reported = await this.#attempt(messageId, from);
      return reported.startsWith('200 ') || undefined;
    };
    const limits = { timeoutMs: TIMEOUT_MS, everyMs: PAUSE_MS };
    if (!(await poll(attempt, limits))) throw new Error(`a message was not accepted: ${reported}`);
    this.#sent.push({ messageId, fate });
    if (!(await poll(attempt, limits))) throw new Error(`a message was not known: ${reported}`);
  }

  /** Signs and sends a message once. @returns the status and the text of the answer. */
  async #attempt(messageId: string, from: 0 | 1): Promise<string> {
    const { api, wallets } = this.#site;
    const message = {
      messageId,
      action: 'BOOKING_REQUEST',
      to: wallets[from === 0 ? 1 : 0].agentId,
      payload: { bookingId: messageId },
      timestamp: Math.floor(Date.now() / 1_000),
    };
    const asked = { agentId: wallets[from].agentId, message };
    const signed = await api.once('POST', `${BUS}/sign`, this.#key(), asked);
    if (signed.status !== 200) return `${signed.status} ${signed.text}`;
    void this.#kill.begins('message');
    const body: object = JSON.parse(signed.text);
    const { status, text } = await api.once('POST', `${BUS}/send`, this.#key(), body);
    return `${status} ${text}`;
  }

  /** Returns the problems: messages that were lost, are not in their one end state, or took their step twice. */
  async problems(): Promise<string[]> {
    const { database, receiver } = this.#site;
    const platform = database.asPlatform();
    const found: string[] = [];
    for (const { fate, messageId } of this.#sent) {
      const rows = await platform.query<StoredMessage>(
        'SELECT status, step, attempts FROM bus_messages WHERE message_id = $messageId',
        { messageId },
      );
      const [row] = rows;
      const name = `the message ${messageId} (${fate})`;
      if (!row || rows.length > 1) {
        found.push(`${name} has ${rows.length} rows after its 200`);
        continue;
      }
      const taken = receiver.taken.get(messageId) ?? 0;
      const [end, least] = fate === 'gone' ? ['dead', 0] : ['delivered', 1];
      if (row.status !== end) found.push(`${name} is ${row.status}, not ${end}`);
      else if (taken < least) found.push(`${name} was taken ${taken} times`);
      else if (row.step !== 'taken') found.push(`${name} has the step ${row.step}`);
    }
    return found;
  }
}
