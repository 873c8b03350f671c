import type { Client } from '@temporalio/client';

/** Returns all texts in the histories of all runs, and the number of runs. */
export async function textsOfHistories(client: Client): Promise<{ runs: number; texts: string[] }> {
  const texts: string[] = [];
  let runs = 0;
  for await (const { workflowId, runId } of client.workflow.list()) {
    runs += 1;
    const history = await client.workflow.getHandle(workflowId, runId).fetchHistory();
    texts.push(...textsOf(history));
  }
  return { runs, texts };
}

/** Returns all texts in a value; bytes, such as payloads, count as text. */
export function textsOf(value: unknown): string[] {
  if (typeof value === 'string') return [value];
  if (value instanceof Uint8Array) return [Buffer.from(value).toString()];
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, inner]) => [key, ...textsOf(inner)]);
}
