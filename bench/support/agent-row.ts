import { randomUUID } from 'node:crypto';

/** An agent of a user's whose gateway has this port. */
export const agentRow = (userId: string, port: number) => ({
  id: randomUUID(),
  userId,
  name: `agent ${port}`,
  subdomain: `agent-${port}`,
  plan: 'solo' as const,
  model: 'auto',
  aiProvider: 'openrouter',
  port,
});
