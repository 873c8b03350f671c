import type { TenantDatabase } from '../database/database.js';
import type { AgentRow, MessageRow } from '../database/models.js';
import { ConflictError } from '../errors.js';
import { storeMessage } from './messages.js';

export type TurnEvent =
  | { readonly kind: 'delta'; readonly content: string }
  | { readonly kind: 'done'; readonly message: MessageRow };

/**
 * One turn of a conversation: yields the answer in pieces, then the stored whole. Both sides are
 * stored, also when the answer never came: then as far as it did.
 *
 * @param answer what the agent answers; it is asked when the first piece is wanted.
 * @throws what the answer fails with.
 */
export async function* chatTurn(
  tenant: TenantDatabase,
  agent: AgentRow,
  question: { readonly message: string; readonly conversation: string },
  answer: AsyncIterable<string>,
): AsyncGenerator<TurnEvent> {
  const side = { agentId: agent.id, userId: agent.userId, conversation: question.conversation };
  const asked = { role: 'user', content: question.message, status: 'complete' } as const;
  await storeMessage(tenant, { ...side, ...asked });
  let content = '';
  let status: 'complete' | 'failed' = 'failed';
  let stored: MessageRow | undefined;
  try {
    for await (const piece of answer) {
      content += piece;
      yield { kind: 'delta', content: piece };
    }
    status = 'complete';
  } finally {
    // Also when the reader leaves in the middle, which ends this generator here.
    stored = await storeMessage(tenant, { ...side, role: 'assistant', content, status });
  }
  yield { kind: 'done', message: stored };
}

/** @throws ConflictError when the agent does not run. */
export function requireRunning({ port, status }: AgentRow): void {
  if (status !== 'active' || port === null) {
    throw new ConflictError('The agent is not running', { status });
  }
}
