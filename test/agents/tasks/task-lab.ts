import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import { randomUUID } from 'node:crypto';
import { createAgentSecrets } from '../../../src/agents/credentials/agent-secrets.js';
import { ringOf } from '../../../src/platform/secrets/key-ring.js';
import { SecretBox } from '../../../src/platform/secrets/secret-box.js';
import type { AgentRef } from '../../../src/types/agent-ref.js';
import { newUser, type TestDatabase } from '../../support/postgres.js';
import { HOST as TASK_HOST } from '../../workflows/support/task-run.js';

export { TASK_HOST };

export const SECRETS = new SecretBox(ringOf(Buffer.alloc(32)));

/** Creates a user with a plan and an agent that counts as running; its gateway is at `port`. */
export async function newTaskAgent(
  { db }: TestDatabase,
  { port, userId }: { readonly port?: number; readonly userId?: string } = {},
): Promise<AgentRef> {
  const owner = userId ?? (await newUser({ db }));
  const id = randomUUID();
  const platform = db.asPlatform();
  await platform.query(
    `INSERT INTO agents (id, user_id, name, subdomain, host, plan, model, ai_provider, desired,
                         status, port, started_at, created_at, updated_at)
     VALUES ($id, $owner, $id, $id, '${TASK_HOST}', 'solo', 'gpt-4', 'openai', 'running', 'active',
             $port, now(), now(), now())`,
    { id, owner, port: port ?? null },
  );
  if (userId === undefined) {
    await platform.query(
      `INSERT INTO subscriptions (user_id, kind, plan, status, source, period_start, created_at,
                                  updated_at)
       VALUES ($owner, 'plan', 'solo', 'active', 'operator', now(), now(), now())`,
      { owner },
    );
  }
  await db
    .asUser(owner)
    .transaction((all) => createAgentSecrets(all, SECRETS, { id, userId: owner }));
  return { agentId: id, userId: owner, host: TASK_HOST };
}

/** The gateway of an agent, as the runtime's. */
export class TaskGateway {
  /** Bodies of the requests that reached the agent. */
  readonly asked: unknown[] = [];
  answer: (response: ServerResponse) => void = saying('Yes, it is');
  readonly #server = createServer((request, response) => {
    void json(request).then((body) => {
      this.asked.push(body);
      this.answer(response);
    });
  });

  async listen(): Promise<number> {
    await once(this.#server.listen(0, '127.0.0.1'), 'listening');
    return (this.#server.address() as AddressInfo).port; // TCP: always an object
  }

  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }
}

export const saying = (text: string) => (response: ServerResponse) => {
  const piece = JSON.stringify({ choices: [{ delta: { content: text } }] });
  response.setHeader('content-type', 'text/event-stream').end(`data: ${piece}\n\ndata: [DONE]\n\n`);
};
