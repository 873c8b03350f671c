// The measure for the web API: Koa and the same queries on the same pool, and nothing else. A
// program of its own: `node bare-server.js`, which sends its port to its parent.
import Koa from 'koa';
import { createHash } from 'node:crypto';
import type { AddressInfo } from 'node:net';
import { QueryTypes } from 'sequelize';
import { Database } from '../../src/database/database.js';

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

const { sequelize, ...database } = openDatabase();
const app = new Koa();
app.use(async (ctx) => {
  const token = /service-session=([\w-]+)/.exec(ctx.get('cookie'))?.[1] ?? '';
  const [session] = await sequelize.query<SessionFound>('SELECT * FROM find_session($1)', {
    type: QueryTypes.SELECT,
    bind: [createHash('sha256').update(token).digest('hex')],
  });
  if (!session) return ctx.throw(401);
  if (ctx.path === '/api/agents') ctx.body = await agentsOf(session.id);
  else ctx.body = sessionBody(session);
});
const server = app.listen(0, '127.0.0.1', () => {
  process.send?.({ port: (server.address() as AddressInfo).port }); // TCP: never a string
});
process.on('disconnect', () => process.exit());

function openDatabase() {
  const opened = new Database(process.env.DATABASE_URL ?? '', { maxConnections: 20 });
  return { sequelize: opened.sequelize, asUser: opened.asUser.bind(opened) };
}

async function agentsOf(userId: string) {
  const agents = await database
    .asUser(userId)
    .transaction((transaction) =>
      sequelize.query<AgentFound>(LIST, { type: QueryTypes.SELECT, transaction }),
    );
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

function sessionBody({ id, name, email, is_admin: isAdmin, csrf_token: csrfToken }: SessionFound) {
  return { user: { id, name, email, isAdmin }, csrfToken };
}
