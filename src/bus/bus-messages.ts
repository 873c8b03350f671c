import type { Database, Statements, TenantDatabase } from '../platform/database/database.js';
import type { SecretBox } from '../platform/secrets/secret-box.js';
import { ConflictError, NotFoundError } from '../lib/errors.js';
import type { BusService, MessageStatus, StepOutcome } from '../types/bus.js';
import type { Attempt } from './bus-delivery.js';
import type { BusMessage } from './bus-message.js';
import { messageContext } from './sealed-contexts.js';

export interface ShownMessage {
  readonly id: string;
  readonly messageId: string;
  readonly action: string;
  readonly from: string;
  readonly to: string;
  readonly service: BusService;
  readonly status: MessageStatus;
  readonly step: StepOutcome | null;
  readonly attempts: readonly Attempt[];
  readonly createdAt: Date;
  readonly deliveredAt: Date | null;
}

/** A message's id, and its sender, where two senders used the same id. */
export interface MessageName {
  readonly messageId: string;
  readonly from?: string | undefined;
}

/**
 * Returns a message that the tenant sent or received, the newest of its id.
 * @throws NotFoundError
 */
export async function getMessage(
  tenant: Statements,
  { from, messageId }: MessageName,
): Promise<ShownMessage> {
  const [found] = await tenant.query<ShownMessage>(
    `SELECT id::text, message_id AS "messageId", action, from_agent AS "from", to_agent AS "to",
            service, status, step, attempts, created_at AS "createdAt",
            delivered_at AS "deliveredAt"
       FROM bus_messages
      WHERE message_id = $messageId AND ($from::text IS NULL OR from_agent = $from)
      ORDER BY id DESC LIMIT 1`,
    { messageId, from: from ?? null },
  );
  if (!found) throw new NotFoundError('Message not found');
  return found;
}

/**
 * Delivers an ended message again. Only the recipient's owner repeats a delivery that succeeded.
 * @throws NotFoundError; ConflictError
 */
export async function redeliver(tenant: TenantDatabase, name: MessageName): Promise<void> {
  const { id, status } = await getMessage(tenant, name);
  if (status === 'queued') return;
  const [due] = await tenant.query(
    `UPDATE bus_messages SET status = 'queued', delivered_at = NULL, due_at = now()
      WHERE id = $id AND status <> 'queued'
        AND (status = 'dead' OR $userId::text IS NULL OR to_user = $userId) RETURNING id`,
    { id, userId: tenant.userId ?? null },
  );
  if (!due) {
    throw new ConflictError(
      "Only the recipient's owner may have a delivered message delivered again",
      'MESSAGE_DELIVERED',
    );
  }
}

export interface ReceivedMessage extends Pick<
  BusMessage,
  'messageId' | 'action' | 'from' | 'payload'
> {
  readonly id: string;
  readonly createdAt: Date;
}

/** Maximum bytes of a page of messages. */
const MAX_PAGE_BYTES = 1024 * 1024;

/** The received messages of agents, for agents that fetch them. */
export class BusInbox {
  readonly #database: Database;
  readonly #secrets: SecretBox;

  constructor(database: Database, secrets: SecretBox) {
    this.#database = database;
    this.#secrets = secrets;
  }

  /**
   * Returns an agent's messages after the one of id `after`, oldest first, and marks those up to `after` as
   * delivered.
   */
  async read(
    agentId: string,
    { after, limit }: { readonly after: string; readonly limit: number },
  ): Promise<{ readonly messages: readonly ReceivedMessage[]; readonly next: string }> {
    const platform = this.#database.asPlatform();
    await platform.query(
      `SELECT id FROM settle_bus_messages(ARRAY(
         SELECT m.id FROM bus_messages m
          WHERE m.to_agent = $agentId AND m.id <= $after AND m.status = 'queued'), 'delivered', NULL)`,
      { agentId, after },
    );
    const rows = await platform.query<Row>(
      `SELECT id, "messageId", "createdAt", "from", sealed FROM (
         SELECT id, message_id AS "messageId", created_at AS "createdAt", from_agent AS "from", sealed,
                sum(octet_length(sealed)) OVER (ORDER BY id) - octet_length(sealed) AS before
           FROM (SELECT * FROM bus_messages WHERE to_agent = $agentId AND id > $after
                  ORDER BY id LIMIT $limit) page
       ) sized WHERE before < ${MAX_PAGE_BYTES} ORDER BY id`,
      { agentId, after, limit },
    );
    const messages = rows.map((row) => this.#opened(row));
    return { messages, next: messages.at(-1)?.id ?? after };
  }

  #opened({ createdAt, from, id, messageId, sealed }: Row): ReceivedMessage {
    const text = this.#secrets.open(sealed, messageContext(from, messageId));
    // The text was sealed by `Bus.send`, after its validation.
    const { action, payload } = JSON.parse(text) as BusMessage;
    return { id: String(id), messageId, action, from, payload, createdAt };
  }
}

interface Row {
  readonly id: string;
  readonly messageId: string;
  readonly createdAt: Date;
  readonly from: string;
  readonly sealed: string;
}
