import { BlockList } from 'node:net';
import { pino, type Logger } from 'pino';
import type { CallingAgent } from '../../../src/agents/credentials/agent-caller-lookup.js';
import { LOOPBACK_NAMES } from '../../../src/platform/http/own-hosts.js';
import { Database } from '../../../src/platform/database/database.js';
import { agentToken } from '../../../api/auth/agent-token.js';
import { apiKey } from '../../../api/auth/api-key.js';
import { internalKey } from '../../../api/auth/internal-key.js';
import { session } from '../../../api/auth/session.js';
import type { Endpoint } from '../../../api/http/endpoint.js';
import { createListener, type ListenerOptions } from '../../../api/http/listener.js';
import type { Listening } from '../../../api/http/server.js';
import { testSecrets } from '../../support/secrets.js';

export const INTERNAL_KEY = 'internal-key-of-this-test';
export const PREVIOUS_KEY = 'previous-key-of-this-test';
export const SESSION_TOKEN = 'session-token-of-this-test';
export const CSRF_TOKEN = 'csrf-token-of-this-test';

export const ADA = { id: 'ada', name: 'Ada', email: 'ada@example.com', isAdmin: false };

/** The agent of `agent-token`. */
export const AGENT: CallingAgent = {
  agentId: 'a1',
  model: 'gpt-4',
  aiProvider: 'openai',
  ownModel: undefined,
  userId: 'ada',
  isAdmin: false,
  plan: 'solo',
};

/** Agents by their tokens. */
const AGENTS: ReadonlyMap<string, CallingAgent> = new Map([
  ['agent-token', AGENT],
  ['agent-token-of-bob', { ...AGENT, agentId: 'b1', userId: 'bob' }],
]);

/** Default settings of a test listener. */
export const HTTP_SETTINGS = {
  ownNames: new Set<string>(LOOPBACK_NAMES),
  production: false,
  hstsSubdomains: false,
  trustedProxies: new BlockList(),
  redisUrl: undefined,
  requestsPerMinute: 6_000,
};

/** Finds the only session. */
export const findSession = (token: string) =>
  Promise.resolve(
    token === SESSION_TOKEN
      ? {
          sessionId: 'of-ada',
          signedInAt: new Date(),
          user: ADA,
          plan: undefined,
          csrfToken: CSRF_TOKEN,
        }
      : undefined,
  );

/** API key authentication without any keys; session authentication requires it. */
export const NO_API_KEYS = apiKey.with(() => Promise.resolve(undefined));

const KNOWN_CALLERS = [
  session.with({ find: findSession }),
  NO_API_KEYS,
  internalKey.with([INTERNAL_KEY, PREVIOUS_KEY]),
  agentToken.with((shown) => Promise.resolve(AGENTS.get(shown.agentToken ?? ''))),
];

/** An unreachable database, which these tests must not use. */
export const NO_DATABASE = new Database('postgres://nobody@127.0.0.1:1/nothing');

export interface TestListener extends Listening {
  readonly log: readonly Record<string, unknown>[];
  call(path: string, init?: RequestInit): Promise<Response>;
}

/** Starts a real listener on a free port, with one signed-in user and an internal key. */
export async function serve(
  endpoints: readonly Endpoint[],
  options: Partial<ListenerOptions> = {},
): Promise<TestListener> {
  const { log, lines } = memoryLog();

  const listener = createListener({
    name: 'test',
    title: 'Test API',
    endpoints,
    limits: [],
    authenticate: KNOWN_CALLERS,
    trustsForwarded: (request) => request.headers.authorization === `Bearer ${INTERNAL_KEY}`,
    database: NO_DATABASE,
    secrets: testSecrets(),
    log,
    settings: HTTP_SETTINGS,
    ...options,
  });
  const listening = await listener.listen('127.0.0.1', 0);
  return {
    ...listening,
    log: lines,
    call: (path, init) => fetch(`${listening.url}${path}`, init),
  };
}

export function memoryLog(): { log: Logger; lines: Record<string, unknown>[] } {
  const lines: Record<string, unknown>[] = [];
  const write = (line: string) => {
    const parsed: unknown = JSON.parse(line);
    if (typeof parsed === 'object' && parsed !== null) lines.push({ ...parsed });
  };
  return { log: pino({ level: 'debug' }, { write }), lines };
}

export function postJson(body: unknown, headers: Record<string, string> = {}): RequestInit {
  return {
    method: 'POST',
    body: typeof body === 'string' ? body : JSON.stringify(body),
    headers: { 'content-type': 'application/json', ...headers },
  };
}

export const signedIn = { cookie: `other=1; service-session=${SESSION_TOKEN}` };
export const bearer = (key: string) => ({ authorization: `Bearer ${key}` });
