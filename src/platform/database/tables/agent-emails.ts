import { literal, Op } from 'sequelize';
import type { EmailStatus } from '../../../types/agent-emails.js';
import { ownedThrough } from '../schema/policies.js';
import {
  index,
  key,
  nullable,
  table,
  text,
  texts,
  timestamp,
  unique,
  withDefault,
} from '../schema/table.js';

/** E-mails to agents; their texts are removed when they are settled, and are messages of the agents then. */
export const agentEmails = table(
  'agent_emails',
  {
    id: key(text()),
    userId: text(),
    agentId: text(),
    /** The mail's id at the provider. */
    providerId: text(),
    /** Address of the sender, to which the answer is sent. */
    sender: text(),
    status: withDefault(text<EmailStatus>(), 'received'),
    /** Reason of a refused, skipped or failed mail. */
    reason: nullable(text()),
    /** The thread's conversation with the agent. */
    conversation: nullable(text()),
    messageId: nullable(text()),
    /** Ids of the thread's earlier mails, for the answer's headers. */
    replyTo: withDefault(texts(), literal(`'{}'`)),
    subject: nullable(text()),
    body: nullable(text()),
    answer: nullable(text()),
    /** The answer's id at the provider, which bounces and complaints name. */
    answerId: nullable(text()),
    /** Time of the first attempt to send the answer. */
    sendingAt: nullable(timestamp()),
    bouncedAt: nullable(timestamp()),
    bounce: nullable(text()),
    complainedAt: nullable(timestamp()),
    receivedAt: withDefault(timestamp(), literal('now()')),
    settledAt: nullable(timestamp()),
    /** Time when the mail is next handed to its workflow. */
    dueAt: withDefault(timestamp(), literal('now()')),
  },
  [
    unique('agent_emails_provider_key', ['provider_id']),
    unique('agent_emails_answer_key', ['answer_id'], { answer_id: { [Op.ne]: null } }),
    index('agent_emails_agent', ['agent_id', 'received_at']),
    index('agent_emails_user', ['user_id', 'id']),
    index('agent_emails_user_received', ['user_id', 'received_at', 'id']),
    index('agent_emails_due', ['due_at'], { settled_at: null }),
    index('agent_emails_settled', ['settled_at'], { settled_at: { [Op.ne]: null } }),
    index('agent_emails_unasked', ['agent_id', 'received_at'], {
      settled_at: { [Op.ne]: null },
      conversation: null,
    }),
    index('agent_emails_unread', ['agent_id'], { status: 'received' }),
  ],
  ownedThrough('user_id'),
);
