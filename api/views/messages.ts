import * as z from 'zod';
import type { MessageRow } from '../../src/platform/database/models.js';
import { page } from '../http/pagination.js';

export const messageItem = z
  .strictObject({
    id: z.string(),
    conversation: z.string(),
    role: z.enum(['user', 'assistant']),
    content: z.string(),
    status: z.enum(['complete', 'failed']),
    createdAt: z.iso.datetime(),
  })
  .meta({ id: 'Message' });

export const conversationName = z.string().min(1).max(128);

/** Filters, to be spread into a query schema. */
export const messagesQuery = {
  conversation: conversationName.optional().describe('Only this conversation'),
  limit: page.limit,
  before: z.string().max(64).optional().describe('Id of a message: only messages before it'),
};

export function presentMessage(message: MessageRow) {
  const { id, conversation, role, content, status, createdAt } = message;
  return { id, conversation, role, content, status, createdAt: createdAt.toISOString() };
}
