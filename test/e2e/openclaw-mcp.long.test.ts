import type { ServerResponse } from 'node:http';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ensureAgentImage } from '../../dev/agent-image/build-openclaw.js';
import { readSettings } from '../../dev/settings.js';
import { AGENT_RUNTIME_VERSION } from '../../src/agents/lifecycle/settings.js';
import { testDocker } from '../support/docker.js';
import { call, type CallOptions } from '../support/http.js';
import {
  startProvider,
  streamCompletion,
  type ProviderRequest,
  type ProviderStub,
} from '../support/provider-stub.js';
import { startTcpProxy, type TcpProxy } from '../support/tcp-proxy.js';
import { until } from '../support/until.js';
import { RealPlatform } from './platform.js';

const LOGIN = { email: 'ada@example.com', password: 'correct horse battery' };
const QUESTION = 'Which agents do I have?';
const ANSWER = 'You have a librarian.';

/** Milliseconds for a start of OpenClaw on a busy machine. */
const READY_MS = 240_000;

let provider: ProviderStub;
let platform: RealPlatform;
/** The backend at an address that containers reach. */
let proxy: TcpProxy;
let publicUrl: string;
let cookie = '';

beforeAll(async () => {
  provider = await startProvider();
  provider.behave(callTool);
  const { docker, host } = testDocker();
  const { cacheDir } = readSettings(process.env).process;
  const build = { docker, version: AGENT_RUNTIME_VERSION, cacheDir, log: console.log };
  platform = await RealPlatform.make({
    AGENT_RUNTIME_IMAGE: process.env.AGENT_RUNTIME_IMAGE ?? (await ensureAgentImage(build)),
    AI_PROVIDER: 'openrouter',
    OPENROUTER_BASE_URL: provider.baseUrl,
    OPENROUTER_API_KEY: provider.apiKey,
    AGENT_EGRESS: 'guarded',
  });
  const bridge = await host.bridgeAddress();
  const backend = `tcp://127.0.0.1:${platform.place.backendPort}`;
  proxy = await startTcpProxy(backend, bridge);
  const reached = `${bridge}:${proxy.port}`;
  publicUrl = `http://${reached}`;
  await platform.start({ BACKEND_PUBLIC_URL: publicUrl, AGENT_EGRESS_ALLOW: reached });
}, 20 * 60_000);
afterAll(async () => {
  await platform?.close();
  await proxy?.close();
  await provider?.close();
});

/** Tools of the platform, which OpenClaw offers by its search. */
const TOOLS = ['agents_list', 'agents_chat', 'usage_summary'];

/** Searches the platform's tools, calls the one that lists agents, and answers once its result is there. */
function callTool({ body }: ProviderRequest, response: ServerResponse): void {
  const { tools = [] } = (body ?? {}) as { tools?: { function: { name: string } }[] };
  const hasSearch = tools.some((tool) => tool.function.name === 'tool_search');
  const results = resultsIn(body);
  const [found] = results;
  if (!hasSearch || results.length > 1) {
    return streamCompletion(response, [{ role: 'assistant', content: ANSWER }]);
  }
  const [name, input] = found
    ? ['tool_call', { id: platformTool(found), args: {} }]
    : ['tool_search', { query: TOOLS.join(' '), limit: 10 }];
  const given = { name, arguments: JSON.stringify(input) };
  const called = { index: 0, id: `call_${results.length}`, type: 'function', function: given };
  streamCompletion(response, [{ role: 'assistant', tool_calls: [called] }], 'tool_calls');
}

/** Returns the results of tools in a request, oldest first. */
function resultsIn(request: unknown): unknown[] {
  const { messages = [] } = (request ?? {}) as { messages?: { role: string; content: unknown }[] };
  return messages.filter(({ role }) => role === 'tool').map(({ content }) => content);
}

/** Returns the id of the tool that lists agents: OpenClaw has a tool of that name without a prefix itself. */
function platformTool(found: unknown): string {
  const ids = JSON.stringify(found).match(/[\w.:/-]*agents_list/g) ?? [];
  return ids.toSorted((one, other) => other.length - one.length)[0] ?? '';
}

async function web(method: string, path: string, options: CallOptions = {}) {
  const answer = await call(platform.webUrl, method, path, { headers: { cookie }, ...options });
  if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.status} ${answer.text}`);
  return answer;
}

const asPlatform = () => ({ authorization: `Bearer ${platform.internalApiKey}` });

test(
  'OpenClaw in an agent lists the agents of its owner as an MCP client of the platform',
  async () => {
    const { id: userId } = (await web('POST', '/api/register', { body: LOGIN })).body;
    const grant = { headers: asPlatform(), body: { userId, plan: 'solo' } };
    await call(platform.backendUrl, 'POST', '/api/subscriptions/deploy', grant);
    const { headers } = await web('POST', '/api/auth/login', { body: LOGIN });
    cookie = headers.getSetCookie()[0]?.split(';')[0] ?? '';
    const { key } = (await web('POST', '/api/keys', { body: { name: 'mcp' } })).body;

    const path = '/api/hostmcp/setup?client=openclaw';
    const setup = await call(platform.backendUrl, 'GET', path, { headers: asPlatform() });
    const { config } = setup.body;
    expect(JSON.stringify(config)).toContain(publicUrl);
    const runtime = JSON.parse(JSON.stringify(config).replace('<API_KEY>', key));
    const made = await web('POST', '/api/agents/provision', {
      body: { name: 'Librarian', config: { runtime } },
    });
    const { id: agentId } = made.body.agent;
    const isRunning = async () =>
      (await web('GET', `/api/agents/${agentId}`)).body.agent.status === 'running';
    await until(isRunning, READY_MS, 3_000);
    expect(platform.output).toContain('Agents reach the internet and the AI listener');

    const asked = await web('POST', '/api/chat', { body: { agentId, message: QUESTION } });
    expect(asked.body.message.content).toBe(ANSWER);
    const last = provider.requests.findLast(({ text }) => text.includes(QUESTION));
    const results = resultsIn(JSON.parse(last?.text ?? '{}')).map((each) => JSON.stringify(each));
    for (const tool of TOOLS) expect(results[0]).toContain(tool);
    // The model got the tool's result: the agent itself.
    expect(results[1]).toContain(agentId);

    // The rules of the networks are removed with the last agent.
    await web('DELETE', `/api/agents/${agentId}`);
    await until(async () => (await platform.remains()).containers.length === 0);
  },
  2 * READY_MS,
);
