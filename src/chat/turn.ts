import type { TenantDatabase } from '../database/database.js';
import type { AgentRow, MessageRow } from '../database/models.js';
import { ConflictError, UnavailableError } from '../errors.js';
import { askGateway, type Gateway } from './gateway.js';
import { storeMessage } from './messages.js';

export type TurnEvent =
  | { readonly kind: 'delta'; readonly content: string }
  | { readonly kind: 'done'; readonly message: MessageRow };

/**
 * One turn of a conversation: yields the answer in pieces, then the stored whole. Both sides are
 * stored, also when the answer never came: then as far as it did.
 *
 * @throws BadGatewayError when the agent's gateway fails.
 */
export async function* chatTurn(
  tenant: TenantDatabase,
  agent: AgentRow,
  gateway: Gateway,
  question: { readonly message: string; readonly conversation: string },
  signal: AbortSignal,
): AsyncGenerator<TurnEvent> {
  const side = { agentId: agent.id, userId: agent.userId, conversation: question.conversation };
  const asked = { role: 'user', content: question.message, status: 'complete' } as const;
  await storeMessage(tenant, { ...side, ...asked });
  let content = '';
  let status: 'complete' | 'failed' = 'failed';
  let stored: MessageRow | undefined;
  try {
    for await (const piece of askGateway(gateway, question, signal)) {
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

/**
 * The port that leads to the agent.
 *
 * @param host the Docker host that this process stands beside. On another one the same port is
 *   somebody else's agent, who must see neither the message nor the token.
 * @throws ConflictError when it does not run.
 * @throws UnavailableError when it is on another host.
 */
export function portOf(agent: AgentRow, host: string): number {
  if (agent.status !== 'active' || agent.port === null) {
    throw new ConflictError('The agent is not running', { status: agent.status });
  }
  if (agent.host !== host) {
    throw new UnavailableError('The agent is on a host that cannot be reached from here');
  }
  return agent.port;
}
