import * as z from 'zod';

/** An address of an agent. */
export const agentUrl = z
  .string()
  .nullable()
  .describe('null where agents have no address: `AGENT_DOMAIN` is not set');
