// The baseline for the web API: Koa with the same queries on the same pool. A separate program: `node
// bare-server.js`, which sends its port to its parent.
import Koa from 'koa';
import { createHash } from 'node:crypto';
import { json } from 'node:stream/consumers';
import type { AddressInfo } from 'node:net';
import { Database } from '../../src/platform/database/database.js';

const LIST = `
  SELECT id, name, model, status, subdomain, port, created_at, updated_at FROM agents
  WHERE desired IN ('running', 'stopped') ORDER BY created_at, id LIMIT 51`;

interface SessionFound {
  readonly id: string;
  readonly name: string;
  readonly email: string;
  readonly is_admin: boolean;
  readonly csrf_token: string;
}

interface AgentFound {
  readonly id: string;
  readonly name: string;
  readonly model: string;
  readonly status: string;
  readonly subdomain: string;
  readonly port: number | null;
  readonly created_at: Date;
  readonly updated_at: Date;
}

const database = new Database(process.env.DATABASE_URL ?? '', { maxConnections: 20 });
const FIND = { name: 'find_signed_in', text: 'SELECT * FROM find_signed_in($1)' };
const FIND_KEY = { name: 'find_keys_beginning', text: 'SELECT * FROM find_keys_beginning($1, $2)' };
const app = new Koa();
app.use(async (ctx) => {
  const token = /service-session=([\w-]+)/.exec(ctx.get('cookie'))?.[1] ?? '';
  const hash = createHash('sha256').update(token).digest('hex');
  const [session] = await database.call<SessionFound>(FIND, [hash]);
  if (!session) return ctx.throw(401);
  if (ctx.path === '/api/agents') ctx.body = await agentsOf(session.id);
  else if (ctx.path === '/api/keys/validate') ctx.body = await keyIn(await json(ctx.req));
  else ctx.body = sessionBody(session);
});
const server = app.listen(0, '127.0.0.1', () => {
  process.send?.({ port: (server.address() as AddressInfo).port }); // TCP: never a string
});
process.on('disconnect', () => process.exit());

async function agentsOf(userId: string) {
  const agents = await database.asUser(userId).query<AgentFound>(LIST);
  return {
    agents: agents.map((agent) => ({
      id: agent.id,
      name: agent.name,
      model: agent.model,
      status: agent.status,
      websocketUrl: `ws://${agent.subdomain}.localhost:${agent.port}`,
      createdAt: agent.created_at,
      updatedAt: agent.updated_at,
    })),
    count: agents.length,
    status: 'ok',
  };
}

interface KeyFound {
  readonly user_id: string;
  readonly email: string;
  readonly plan: string | null;
}

async function keyIn(body: unknown) {
  const { apiKey } = body as { apiKey: string }; // the benchmark sends nothing else
  const hash = createHash('sha256').update(apiKey).digest('hex');
  const [key] = await database.call<KeyFound>(FIND_KEY, [apiKey.slice(0, 10), hash]);
  return { valid: key !== undefined, userId: key?.user_id, email: key?.email, plan: key?.plan };
}

function sessionBody({ id, name, email, is_admin: isAdmin, csrf_token: csrfToken }: SessionFound) {
  return { user: { id, name, email, isAdmin }, csrfToken };
}
