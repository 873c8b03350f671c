import { randomUUID } from 'node:crypto';
import { createServer, type RequestListener } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { agentBusEndpoints } from '../../api/containers/bus.js';
import { agentAiEndpoints } from '../../api/containers/ai.js';
import { openApiDocument } from '../../api/http/openapi.js';
import { readAgentTokens } from '../../src/agents/credentials/agent-secrets.js';
import type {
  AgentSupervisors,
  RequestedOperation,
} from '../../src/agents/operations/supervisors.js';
import { VerificationStore } from '../../src/agents/verification/verification-store.js';
import { publishShippedSkills } from '../../src/skills/shipped-skills.js';
import { KEY_SCOPES } from '../../src/types/key-scopes.js';
import type { RequestedKind } from '../../src/types/operation-kinds.js';
import type { Database } from '../../src/platform/database/database.js';
import { handOverPeriodically } from '../../worker/hand-over.js';
import { verifications } from '../../worker/handed-rows.js';
import { call } from '../support/http.js';
import {
  ADMIN_EMAIL,
  testPlatform,
  type TestPlatform,
  type TestUser,
} from '../support/platform.js';
import { sendEvents, streamOf } from '../support/ai-providers.js';
import { completion, sendJson } from '../support/provider-stub.js';
import { testSummarizer, type TestSummarizer } from '../support/summarizer.js';
import { operationsOf } from './document.js';
import type { FuzzCaller, FuzzTarget } from './fuzz.js';

/** A platform to fuzz. */
export interface FuzzSite {
  readonly targets: readonly FuzzTarget[];
  /** Creates resources that a round may remove. */
  renew(): Promise<void>;
  close(): Promise<void>;
}

/** Supervisors that complete every operation at once and create no container. */
class Instant implements AgentSupervisors {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  provision(_agent: unknown, operationId: string): Promise<RequestedOperation> {
    return this.#end(operationId);
  }

  request(_agent: unknown, _kind: RequestedKind, operationId: string): Promise<RequestedOperation> {
    return this.#end(operationId);
  }

  async #end(operationId: string): Promise<RequestedOperation> {
    await this.#database
      .asPlatform()
      .query(
        `UPDATE operations SET status = 'succeeded', finished_at = now() WHERE id = $operationId`,
        { operationId },
      );
    return { operationId, run: undefined };
  }

  hasRequest = () => Promise.resolve(true);
  isInFlight = () => Promise.resolve(false);
  ping = () => Promise.resolve();
}

/** Operations that remove resources of their caller: they get spare ones. */
const TAKES_AWAY = /^DELETE |signout$|subscriptions\/deploy$/;

/** Operations that sign their caller out. */
const ENDS_SESSIONS = /signout|sessions|password|\/auth\/login/;

const SECRET = 'the secret project';

/** Operations that depend on third parties, which do not run here. */
const AWAY = {
  'GET /api/auth/token-gating/verify': [503],
  'POST /api/auth/token-gating/verify': [503],
  'POST /api/auth/farcaster/verify': [503],
  'POST /api/settings/identities/farcaster': [503],
  'POST /api/settings/identities/wallet': [503],
  'POST /api/wallet-auth': [503],
  'POST /api/skills/instant-split': [503],
  'POST /api/skills/booking-settlement': [503],
  'GET /api/wallet': [500],
  'POST /api/wallet/create': [500],
  'POST /api/billing': [500, 503],
  'POST /api/wallet/sessions': [503],
  'GET /api/wallet/top-up': [500],
  'POST /api/wallet/top-up': [500],
  'POST /api/webhooks/email': [503],
  'POST /api/generate-video': [503],
  'POST /api/webhooks/video': [503],
  'GET /api/payproc/credits': [500],
  'GET /api/payproc/checkout': [500],
  'POST /api/payproc/storage-upgrade': [500],
  'POST /api/agents/clone': [503],
  'POST /api/browse/git-sync': [500],
  'POST /api/settings/identities/google': [502, 503],
  'POST /api/settings/identities/github': [503],
  'GET /api/radio/live': [503],
  'GET /api/radio/streams': [503],
  'POST /api/radio/streams': [503],
  'DELETE /api/radio/streams': [503],
  'GET /api/x402': [503],
  'POST /api/x402': [500],
};

export async function fuzzSite(): Promise<FuzzSite> {
  const gateway = await startGateway();
  const summarizer = await testSummarizer(foreignPages);
  const platform = await testPlatform({
    workers: false,
    supervisors: (database) => new Instant(database),
    env: {
      AGENT_HOST_CAPACITY: '65000',
      // An identity provider is configured, so that its events are checked, but does not answer.
      IDP_CLIENT_ID: 'fuzz',
      IDP_ISSUER_URL: 'http://127.0.0.1:1',
      IDP_RISC_CONFIGURATION_URL: 'http://127.0.0.1:1/risc',
    },
  });
  const ending = new AbortController();
  const verifying = verifyAtOnce(platform, ending.signal);
  const close = async () => {
    ending.abort();
    await verifying;
    await platform.close();
    await gateway.close();
    await summarizer.close();
  };
  try {
    const { renew, targets } = await furnish(platform, gateway.port);
    return { targets: [...targets, await targetOf(summarizer)], renew, close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Ends every verification at once, without a measurement. */
function verifyAtOnce({ db, log }: TestPlatform, signal: AbortSignal): Promise<void> {
  const store = new VerificationStore(db);
  const start = async (agentId: string) => {
    const open = await store.open(agentId);
    if (!open) return false;
    await store.recordMeasured(open.id, { checks: [], image: '' });
    await store.finish(open);
    return true;
  };
  return handOverPeriodically({ database: db, log }, verifications({ start }), signal);
}

async function furnish(
  platform: TestPlatform,
  gatewayPort: number,
): Promise<Pick<FuzzSite, 'targets' | 'renew'>> {
  await publishShippedSkills(platform.db, platform.log);
  const [ada, bob] = [await platform.signUp('network'), await platform.signUp('network')];
  const admin = await platform.signUp('network', ADMIN_EMAIL);
  const adas = await newAgent(platform, ada, { name: SECRET, config: { note: SECRET } });
  const bobs = await newAgent(platform, bob);
  await platform.asOwner(
    `UPDATE agents SET status = 'active', port = ${gatewayPort}, started_at = now(), host = 'local'
      WHERE id = '${bobs}'`,
  );
  platform.provider.behave(({ body }, response) => {
    const { model, stream } = body ?? {};
    if (stream === true) sendEvents(response, streamOf('openai', String(model), 'said'));
    else sendJson(response, 200, completion('said', model));
  });
  const everywhere = platform.db.asPlatform();
  const adasTokens = await readAgentTokens(everywhere, platform.secrets, adas);
  const tokens = await readAgentTokens(everywhere, platform.secrets, bobs);
  const key = await newKey(platform, bob);

  /** Resources that the next round may remove. */
  let spare = {
    agent: bobs,
    key: key.id,
    host: 'local',
    user: bob.id,
    cookie: '',
    archive: '',
    task: '',
  };
  const renew = async () => {
    const user = await platform.signUp();
    const host = `host-${randomUUID()}`;
    await platform.asOwner(
      `INSERT INTO hosts (id, engine_id, engine_available, capacity, first_port, last_port, seen_at, created_at, updated_at)
       VALUES ('${host}', '${host}', true, 1, 30000, 30001, now() - interval '1 day', now(), now())`,
    );
    const { cookie } = await platform.signUp();
    const [agent, { id }] = [await newAgent(platform, bob), await newKey(platform, bob)];
    const archive = randomUUID();
    await platform.asOwner(
      `INSERT INTO agent_archives (id, agent_id, user_id, volume, reason, created_at)
       VALUES ('${archive}', '${bobs}', '${bob.id}', '${archive}', 'reset-memory', now())`,
    );
    const task = randomUUID();
    await platform.asOwner(
      `DELETE FROM scheduled_tasks;
       INSERT INTO scheduled_tasks (id, user_id, agent_id, name, message, schedule, timezone, enabled,
                                    set_at, created_at, updated_at)
       VALUES ('${task}', '${bob.id}', '${bobs}', 'a task', 'hi', '7d', 'UTC', false, now(), now(), now())`,
    );
    spare = { agent, key: id, host, user: user.id, cookie, archive, task };
  };

  const [operation] = await everywhere.query<{ id: string }>(
    'SELECT id FROM operations WHERE user_id = $id LIMIT 1',
    { id: bob.id },
  );
  const traced = operation?.id ?? '';
  const invite = await platform.backend(undefined, 'POST', '/api/invite/generate', {
    body: { uses: 1_000 },
  });
  const { body: shown } = await platform.web(bob, 'GET', `/api/agents/${bobs}`);
  const known = {
    domain: [new URL(shown.agent.url).hostname],
    name: ['an agent', `agent ${randomUUID()}`],
    password: [bob.password],
    model: ['gpt-4', 'openai/gpt-6-luna', 'auto'],
    plan: ['label', 'solo', 'network'],
    provider: ['openai', 'anthropic'],
    taskType: ['coding', 'general'],
    aiProvider: ['openai'],
    version: ['2026.1.1'],
    skill: ['weather', 'daily-brief'],
    role: ['user', 'system'],
    stats: ['true'],
    wait: ['0', '1'],
    limit: ['1', '50'],
    days: ['7'],
    frequency: ['3h'],
    schedule: ['5m', '0 9 * * *'],
    timezone: ['UTC', 'Europe/Berlin'],
  };
  const knownTo = (operation: { readonly name: string }) => {
    const agents = TAKES_AWAY.test(operation.name) ? [spare.agent] : [bobs, bobs, bobs, adas];
    const byPath = operation.name.includes('/keys/')
      ? [spare.key]
      : operation.name.includes('/hosts/')
        ? [spare.host]
        : operation.name.includes('/scheduled-tasks')
          ? [spare.task]
          : operation.name.includes('/traces')
            ? [traced]
            : agents;
    const names = operation.name.includes('/credentials/') ? ['SHOP_TOKEN'] : known.name;
    const newcomer = [`${randomUUID()}@example.com`];
    const users = TAKES_AWAY.test(operation.name) ? [spare.user] : [bob.id, bob.id, ada.id];
    return {
      ...known,
      id: byPath,
      agentId: agents,
      userId: users,
      name: names,
      email: operation.name.endsWith('/register') ? newcomer : [bob.email],
      confirm: [spare.host],
      archiveId: [spare.archive],
      ...(operation.name === 'POST /api/invite/validate' && { code: [invite.body.code] }),
      mode: ['home'],
      ...(operation.name.includes('/api/skills') && {
        name: ['daily-brief', `skill-${randomUUID()}`],
        content: ['# Say it', '---\nname: other\n---\nx'],
        action: ['use', 'install', 'remove'],
      }),
      ...(operation.name === 'POST /api/billing' && { provider: ['openai'] }),
      // An address, so that no name has to be resolved.
      ...(operation.name.includes('/webhooks/') && { url: ['https://8.8.8.8/'] }),
      ...(operation.name === 'POST /api/wallet' && { action: ['create', 'get_seed'] }),
    };
  };
  const forbidden = [SECRET, ...adasTokens, ada.email];
  const caller = (
    name: string,
    headers: Readonly<Record<string, string>>,
    seesAll = false,
  ): FuzzCaller => ({
    name,
    headersFor: (operation) =>
      ENDS_SESSIONS.test(operation.name) && name !== 'nobody' ? { cookie: spare.cookie } : headers,
    knownFor: knownTo,
    forbidden: seesAll ? [] : forbidden,
  });
  const internal = { authorization: `Bearer ${platform.internalKey}` };
  const paid = { 'x-user-plan': 'network', 'x-billing-subscription-id': 'sub_1' };

  const documentOf = async (url: string) =>
    (await call(url, 'GET', '/openapi.json')).body as unknown;
  const targets: FuzzTarget[] = [
    {
      name: 'web',
      url: platform.webUrl,
      operations: operationsOf(await documentOf(platform.webUrl)),
      callers: [
        caller('nobody', {}),
        caller('bob', { cookie: bob.cookie }),
        caller('an admin', { cookie: admin.cookie }),
      ],
      away: AWAY,
    },
    {
      name: 'backend',
      url: platform.backendUrl,
      operations: operationsOf(await documentOf(platform.backendUrl)),
      callers: [
        caller('nobody', {}),
        caller('the operator', { ...internal, ...paid }, true),
        caller('the web API for bob', { ...internal, ...paid, 'x-user-id': bob.id }),
        caller("bob's program", { authorization: `Bearer ${key.key}` }),
      ],
      // A signature of no known key may be a contract's, and there is no chain to verify it.
      away: {
        'POST /api/radio/authorize': [503],
        'POST /api/browse/git-sync': [500],
        'POST /api/underground/wallets': [503],
        'POST /api/underground/splits': [503],
        // No process signs here.
        'POST /api/underground/bus/sign': [503],
        'GET /api/underground/wallets/{address}/balance': [500],
      },
    },
    {
      name: 'agents',
      url: platform.agentsUrl,
      operations: operationsOf(
        openApiDocument({
          title: 'agents',
          release: '1',
          endpoints: [
            ...agentAiEndpoints(platform.dependencies.agents),
            ...agentBusEndpoints(platform.dependencies.agents),
          ],
          limits: [],
        }),
      ),
      callers: [
        caller('nobody', {}),
        ...tokens.map((token) => caller('an agent', { authorization: `Bearer ${token}` })),
      ],
      away: { 'POST /v1/bus/messages': [503] },
    },
  ];
  return { targets, renew };
}

/** Returns the summarizer's target; its callers do not authenticate. */
async function targetOf({ site, url }: TestSummarizer): Promise<FuzzTarget> {
  const paths = Object.keys(FOREIGN_PAGES).map((path) => `${site}${path}`);
  const refused = [
    'http://127.0.0.1/',
    'http://169.254.169.254/',
    'http://[::1]/',
    'file:///etc/passwd',
  ];
  const { body } = await call(url, 'GET', '/openapi.json');
  const forPages = [500];
  return {
    name: 'summarizer',
    url,
    operations: operationsOf(body),
    callers: [
      {
        name: 'nobody',
        headersFor: () => ({}),
        knownFor: () => ({ url: [...paths, ...refused] }),
        forbidden: [],
      },
    ],
    away: {
      'POST /api/summarize': forPages,
      'POST /api/extract': forPages,
      'POST /api/read': [502, 504],
    },
  };
}

const HTML = { 'content-type': 'text/html' };

/** Responses of page servers, by path. */
const FOREIGN_PAGES: Readonly<Record<string, RequestListener>> = {
  '/': (_request, response) => response.writeHead(200, HTML).end('<title>A</title><p>A page.</p>'),
  '/data': (_request, response) =>
    response.writeHead(200, HTML).end(
      `<html lang=7><script type="application/ld+json">[{"@type":["Article",7,null],"author":[[],{"name":{}}],
       "datePublished":{},"headline":[1],"inLanguage":{"a":[]},"publisher":"x","articleBody":["a",{}]}]</script>
       <meta name="og:__proto__" content="a"><meta property="og:title" content="&#xd800;"><base href="http://[">
       <a href="//&#0;">x</a><img srcset=",,, 1x 2y" alt="\ud83d"><svg><title>t</title></svg><table><td><ul><pre>`,
    ),
  '/nothing': (_request, response) => response.writeHead(200, HTML).end(),
  '/missing': (_request, response) => response.writeHead(404, HTML).end(),
  '/picture': (_request, response) =>
    response.writeHead(200, { 'content-type': 'image/png' }).end(),
  '/inside': (_request, response) =>
    response.writeHead(302, { location: 'http://10.0.0.1/' }).end(),
  '/round': (_request, response) => response.writeHead(302, { location: '/round' }).end(),
  '/packed': (_request, response) =>
    response.writeHead(200, { ...HTML, 'content-encoding': 'gzip' }).end('not packed'),
  '/broken': (request) => request.socket.destroy(),
};

const foreignPages: RequestListener = (request, response) =>
  (FOREIGN_PAGES[request.url ?? ''] ?? FOREIGN_PAGES['/nothing'])?.(request, response);

async function newAgent(platform: TestPlatform, user: TestUser, body = {}): Promise<string> {
  const made = await platform.web(user, 'POST', '/api/agents/provision', {
    body: { name: `agent ${randomUUID()}`, model: 'gpt-4', ...body },
  });
  if (made.status !== 201) throw new Error(made.text);
  return made.body.agent.id as string;
}

async function newKey(platform: TestPlatform, user: TestUser) {
  const made = await platform.web(user, 'POST', '/api/keys', {
    body: { name: 'a key', scopes: KEY_SCOPES },
  });
  if (made.status !== 201) throw new Error(made.text);
  return made.body as { readonly id: string; readonly key: string };
}

/** Starts an agent gateway that answers every request. */
async function startGateway() {
  const server = createServer((request, response) => {
    request.resume();
    const piece = { choices: [{ delta: { content: 'said' } }] };
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.end(`data: ${JSON.stringify(piece)}\n\ndata: [DONE]\n\n`);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo; // a TCP listener's port is never a string
  return {
    port,
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
