import { randomUUID } from 'node:crypto';

/** Returns the row of a user's agent whose gateway has this port. */
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
