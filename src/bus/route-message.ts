import type { Database, TransactionStatements } from '../platform/database/database.js';
import type { SecretBox } from '../platform/secrets/secret-box.js';
import type { BusService, StepOutcome, ThreadState } from '../types/bus.js';
import type { BusMessage } from './bus-message.js';
import { stepOf } from './negotiation.js';
import { messageContext, threadContext } from './sealed-contexts.js';

/** Maximum number of characters of an id of a booking or a post, of a channel, and of a term. */
const MAX_LENGTH = 256;

interface Stored {
  readonly messageId: string;
  readonly service: BusService;
  readonly fromUser: string;
  readonly toUser: string;
  readonly fromAgent: string;
  readonly sealed: string;
}

/** A message with the owners of its agents. */
interface Routed extends BusMessage {
  readonly fromUser: string;
  readonly toUser: string;
}

/**
 * Passes a message to the service of its action, once. A message without the service's fields is only
 * delivered.
 */
export async function routeMessage(
  database: Database,
  secrets: SecretBox,
  id: string,
): Promise<void> {
  await database.asPlatform().statements(async (db) => {
    const [stored] = await db.query<Stored>(
      `SELECT message_id AS "messageId", service, from_user AS "fromUser", to_user AS "toUser",
              from_agent AS "fromAgent", sealed
         FROM bus_messages WHERE id = $id AND routed_at IS NULL AND status = 'queued' FOR UPDATE`,
      { id },
    );
    if (!stored) return;
    const { fromAgent, fromUser, messageId, sealed, service, toUser } = stored;
    // The text was sealed by `Bus.send`, after its validation.
    const message = JSON.parse(
      secrets.open(sealed, messageContext(fromAgent, messageId)),
    ) as BusMessage;
    const routed: Routed = { ...message, fromUser, toUser };
    const step =
      service === 'negotiation' ? await negotiate(db, secrets, routed) : await amplify(db, routed);
    await db.query('UPDATE bus_messages SET routed_at = now(), step = $step WHERE id = $id', {
      id,
      step: step ?? null,
    });
  });
}

interface Thread {
  readonly state: ThreadState;
  readonly lastBy: string;
  readonly sealedTerms: string;
}

/** Makes a message's step in the thread of both parties and the booking. */
async function negotiate(
  db: TransactionStatements,
  secrets: SecretBox,
  { action, from, fromUser, payload, to, toUser }: Routed,
): Promise<StepOutcome | undefined> {
  const bookingId = textOf(payload.bookingId);
  if (bookingId === undefined) return undefined;
  const [a, b] = [
    { agent: from, user: fromUser },
    { agent: to, user: toUser },
  ].sort((one, other) => (one.agent < other.agent ? -1 : 1)) as [Party, Party];
  const context = threadContext(a.agent, b.agent, bookingId);
  // Concurrent messages of both parties are processed one after the other.
  await db.lock(context);
  const key = { agentA: a.agent, agentB: b.agent, bookingId };
  const [thread] = await db.query<Thread>(
    `SELECT state, last_by AS "lastBy", sealed_terms AS "sealedTerms" FROM bus_threads
      WHERE agent_a = $agentA AND agent_b = $agentB AND booking_id = $bookingId`,
    key,
  );
  const step = stepOf(thread, action, from);
  if (step?.state === undefined) return step?.outcome;
  const before = thread && (JSON.parse(secrets.open(thread.sealedTerms, context)) as object);
  const terms = { ...before, ...termsOf(payload) };
  await db.query(
    `INSERT INTO bus_threads (agent_a, user_a, agent_b, user_b, booking_id, state, last_by, sealed_terms)
       VALUES ($agentA, $userA, $agentB, $userB, $bookingId, $state, $from, $sealed)
     ON CONFLICT (agent_a, agent_b, booking_id) DO UPDATE
        SET state = excluded.state, last_by = excluded.last_by,
            sealed_terms = excluded.sealed_terms, updated_at = now()`,
    {
      ...key,
      ...{ userA: a.user, userB: b.user, state: step.state, from },
      sealed: secrets.seal(JSON.stringify(terms), context),
    },
  );
  return step.outcome;
}

interface Party {
  readonly agent: string;
  readonly user: string;
}

/** Records a message about a post and a channel. */
async function amplify(
  db: TransactionStatements,
  { action, from, fromUser, payload, to, toUser }: Routed,
): Promise<undefined> {
  const [postId, channel] = [textOf(payload.postId), textOf(payload.channel)];
  if (postId === undefined || channel === undefined) return;
  await db.query(
    `INSERT INTO bus_amplifications AS r
       (from_agent, from_user, to_agent, to_user, post_id, channel, last_action)
       VALUES ($from, $fromUser, $to, $toUser, $postId, $channel, $action)
     ON CONFLICT (from_agent, to_agent, post_id, channel) DO UPDATE
        SET last_action = excluded.last_action, messages = r.messages + 1, updated_at = now()`,
    { from, fromUser, to, toUser, postId, channel, action },
  );
}

const textOf = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' && value.length <= MAX_LENGTH ? value : undefined;

/** Returns the terms of a payload: those that are short texts or numbers. */
function termsOf(payload: BusMessage['payload']): object {
  const terms = ['amount', 'currency', 'eventId'].map((name) => {
    const value = payload[name];
    return [name, typeof value === 'number' ? value : textOf(value)] as const;
  });
  return Object.fromEntries(terms.filter(([, value]) => value !== undefined));
}
