import { col, literal, Op } from 'sequelize';
import type { BusService, MessageStatus, StepOutcome, ThreadState } from '../../../types/bus.js';
import { ownedThrough, seenByBoth } from '../schema/policies.js';
import {
  bigint,
  date,
  index,
  integer,
  json,
  key,
  nullable,
  serial,
  table,
  text,
  texts,
  timestamp,
  unique,
  withDefault,
} from '../schema/table.js';

const now = () => withDefault(timestamp(), literal('now()'));

/** Webhooks of agents; without `url`, only the state of an agent's dead letters. */
export const busWebhooks = table(
  'bus_webhooks',
  {
    agentId: key(text()),
    userId: text(),
    url: nullable(text()),
    /** Key of the deliveries' signatures. */
    sealedSecret: nullable(text()),
    /** Agents and owners whose messages are refused. */
    refuses: withDefault(texts(), literal(`'{}'`)),
    /** Dead letters since the last delivery. */
    deadInRow: withDefault(integer(), 0),
    /** Time since which deliveries are paused, until the webhook is set again. */
    pausedAt: nullable(timestamp()),
    /** Time of the last mail about dead letters. */
    mailedAt: nullable(timestamp()),
    createdAt: now(),
  },
  [index('bus_webhooks_user', ['user_id'])],
  ownedThrough('user_id'),
);

/** Sums of an owner's messages: stored bytes, and messages sent on a day. */
export const busCounts = table(
  'bus_counts',
  {
    userId: key(text()),
    /** Bytes of the stored messages, as sender and as recipient. */
    bytes: withDefault(bigint(), literal('0')),
    /** UTC day of `sent`. */
    day: nullable(date()),
    sent: withDefault(integer(), 0),
  },
  [],
  ownedThrough('user_id'),
);

/** Messages between agents. */
export const busMessages = table(
  'bus_messages',
  {
    id: key(serial()),
    /** Unique for a sender. */
    messageId: text(),
    action: text(),
    service: text<BusService>(),
    fromAgent: text(),
    fromUser: text(),
    toAgent: text(),
    toUser: text(),
    /** Digest of the signed text. */
    digest: text(),
    /** The message without its signature. */
    sealed: text(),
    status: withDefault(text<MessageStatus>(), 'queued'),
    step: nullable(text<StepOutcome>()),
    attempts: withDefault(json(), literal(`'[]'`)),
    /** Time when the negotiation or the amplification had the message. */
    routedAt: nullable(timestamp()),
    /** Time when its delivery was first tried. */
    triedAt: nullable(timestamp()),
    deliveredAt: nullable(timestamp()),
    /** Time when the message is next handed to its workflow. */
    dueAt: now(),
    createdAt: now(),
  },
  [
    unique('bus_messages_sender_key', ['from_agent', 'message_id']),
    index('bus_messages_recipient', ['to_agent', 'id']),
    index('bus_messages_waiting', ['to_agent', 'id'], { status: 'queued' }),
    index('bus_messages_message', ['message_id']),
    index('bus_messages_from_user', ['from_user', 'id']),
    index('bus_messages_from_others', ['to_user', 'id'], {
      from_user: { [Op.ne]: col('to_user') },
    }),
    index('bus_messages_created', ['created_at']),
    index('bus_messages_due', ['due_at'], { status: 'queued' }),
    index('bus_messages_untried', ['from_agent', 'to_agent', 'id'], { tried_at: null }),
  ],
  seenByBoth('from_user', 'to_user'),
);

/** Negotiations: one for two agents and a booking. */
export const busThreads = table(
  'bus_threads',
  {
    /** The lesser id of the two. */
    agentA: key(text()),
    userA: text(),
    agentB: key(text()),
    userB: text(),
    bookingId: key(text()),
    state: text<ThreadState>(),
    /** Agent that took the last step. */
    lastBy: text(),
    /** Amount, currency and event of the last message that had them. */
    sealedTerms: text(),
    createdAt: now(),
    updatedAt: now(),
  },
  [
    index('bus_threads_second', ['agent_b']),
    index('bus_threads_updated', ['updated_at']),
    index('bus_threads_user_a', ['user_a', 'created_at']),
    index('bus_threads_user_b', ['user_b', 'created_at']),
  ],
  seenByBoth('user_a', 'user_b'),
);

/** Amplifications: one for two agents, a post and a channel. */
export const busAmplifications = table(
  'bus_amplifications',
  {
    fromAgent: key(text()),
    fromUser: text(),
    toAgent: key(text()),
    toUser: text(),
    postId: key(text()),
    channel: key(text()),
    lastAction: text(),
    messages: withDefault(integer(), 1),
    createdAt: now(),
    updatedAt: now(),
  },
  [
    index('bus_amplifications_recipient', ['to_agent']),
    index('bus_amplifications_updated', ['updated_at']),
  ],
  seenByBoth('from_user', 'to_user'),
);

/** Texts that the process with the wallets' keys is to sign. */
export const busSignatures = table(
  'bus_signatures',
  {
    id: key(text()),
    userId: text(),
    agentId: text(),
    sealedText: text(),
    signature: nullable(text()),
    /** Time when the text is next handed to its signer. */
    dueAt: now(),
    createdAt: now(),
  },
  [
    index('bus_signatures_due', ['due_at'], { signature: null }),
    index('bus_signatures_created', ['created_at']),
    index('bus_signatures_agent', ['agent_id']),
  ],
  ownedThrough('user_id'),
);
