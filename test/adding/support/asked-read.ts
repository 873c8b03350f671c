import { randomUUID } from 'node:crypto';
import { internalKey } from '../../../api/auth/internal-key.js';
import { session } from '../../../api/auth/session.js';
import { operationEndpoints } from '../../../api/backend/operations.js';
import { BackendClient } from '../../../api/web/backend-client.js';
import { lifecycleEndpoints } from '../../../api/web/lifecycle.js';
import type { AgentOperations } from '../../../src/agents/lifecycle/agent-operations.js';
import {
  ADA,
  bearer,
  CSRF_TOKEN,
  INTERNAL_KEY,
  NO_API_KEYS,
  serve,
} from '../../api/http/support.js';
import { newUser, testDatabase } from '../../support/postgres.js';

/** The answers of one listener about Ada's agent. */
export interface Answers {
  readonly nobody: number;
  readonly bob: number;
  readonly ada: unknown;
}

/** Requests a read of an agent from both listeners; the web API reaches no backend. */
export async function askBoth(read: string): Promise<{ web: Answers; backend: Answers }> {
  const database = await testDatabase();
  const [ada, bob] = [await newUser(database), await newUser(database)];
  const agent = { id: 'agent-of-ada', userId: ada, name: 'of ada', subdomain: randomUUID() };
  const model = { plan: 'solo', model: 'gpt-4', aiProvider: 'openai' } as const;
  await database.db.asUser(ada).transaction((db) => db.Agent.create({ ...agent, ...model }));

  // A session's token is the id of its user.
  const find = (id: string) =>
    Promise.resolve({
      sessionId: id,
      signedInAt: new Date(),
      user: { ...ADA, id },
      plan: undefined,
      csrfToken: CSRF_TOKEN,
    });
  const options = {
    database: database.db,
    authenticate: [session.with({ find }), NO_API_KEYS, internalKey.with([INTERNAL_KEY])],
  };
  const none = {} as AgentOperations; // no operation is requested
  const client = new BackendClient('http://127.0.0.1:1', INTERNAL_KEY);
  const [web, backend] = await Promise.all([
    serve(lifecycleEndpoints({ backend: client }), options),
    serve(operationEndpoints({ operations: none }), options),
  ]);
  const answersOf = async (
    listener: typeof web,
    headersOf: (userId: string) => Record<string, string>,
  ): Promise<Answers> => {
    const call = (headers: Record<string, string>) =>
      listener.call(`/api/agents/${agent.id}/${read}`, { headers });
    const [nobody, ofBob, ofAda] = await Promise.all(
      [{}, headersOf(bob), headersOf(ada)].map(call),
    );
    return { nobody: nobody!.status, bob: ofBob!.status, ada: await ofAda!.json() };
  };
  try {
    return {
      web: await answersOf(web, (userId) => ({ cookie: `service-session=${userId}` })),
      backend: await answersOf(backend, (userId) => ({
        ...bearer(INTERNAL_KEY),
        'x-user-id': userId,
      })),
    };
  } finally {
    await Promise.all([web.close(), backend.close()]);
    await database.close();
  }
}
