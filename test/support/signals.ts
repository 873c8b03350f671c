import type { Client } from '@temporalio/client';
import { superviseAgentId } from '../../workflows/ids.js';

/** Returns the payloads of a signal that an agent's supervisor received in its current run, oldest first. */
export async function endedBySignal(
  client: Client,
  agentId: string,
  signal: string,
): Promise<unknown[]> {
  const { events } = await client.workflow.getHandle(superviseAgentId(agentId)).fetchHistory();
  return (events ?? []).flatMap(({ workflowExecutionSignaledEventAttributes: sent }) => {
    if (sent?.signalName !== signal) return [];
    const data = sent.input?.payloads?.[0]?.data;
    return [data ? JSON.parse(Buffer.from(data).toString()) : undefined];
  });
}
