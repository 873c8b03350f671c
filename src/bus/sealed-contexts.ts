/** Context that binds the secret of a webhook to its agent. */
export const webhookContext = (agentId: string): string => `bus-webhook/${agentId}`;

/** Context that binds a stored message to its sender and id. */
export const messageContext = (from: string, messageId: string): string =>
  JSON.stringify(['bus-message', from, messageId]);

/** Context that binds the terms of a negotiation to its thread. */
export const threadContext = (agentA: string, agentB: string, bookingId: string): string =>
  JSON.stringify(['bus-thread', agentA, agentB, bookingId]);

/** Context that binds a text that is to be signed to its row. */
export const signatureContext = (id: string): string => `bus-signature/${id}`;
