import type { Client } from '@temporalio/client';

/** Every text in the histories of all runs, and how many runs there are. */
export async function textsOfHistories(client: Client): Promise<{ runs: number; texts: string[] }> {
  const texts: string[] = [];
  let runs = 0;
  for await (const { workflowId, runId } of client.workflow.list()) {
    runs += 1;
    const history = await client.workflow.getHandle(workflowId, runId).fetchHistory();
    collectTexts(history, texts);
  }
  return { runs, texts };
}

/** Every text in a value; bytes, as payloads are, count as text. */
function collectTexts(value: unknown, texts: string[]): void {
  if (typeof value === 'string') texts.push(value);
  else if (value instanceof Uint8Array) texts.push(Buffer.from(value).toString());
  else if (typeof value === 'object' && value !== null) {
    for (const [key, inner] of Object.entries(value)) {
      texts.push(key);
      collectTexts(inner, texts);
    }
  }
}
