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

/** Calls the tool that lists agents, and answers once its result is there. */
function callTool({ body }: ProviderRequest, response: ServerResponse): void {
  const { messages, tools = [] } = body as {
    messages: { role: string }[];
    tools?: { function: { name: string } }[];
  };
  const name = tools.map((tool) => tool.function.name).find((each) => /agents_list$/.test(each));
  if (name === undefined || messages.at(-1)?.role === 'tool') {
    return streamCompletion(response, [{ role: 'assistant', content: ANSWER }]);
  }
  const called = { index: 0, id: 'call_1', type: 'function', function: { name, arguments: '{}' } };
  streamCompletion(response, [{ role: 'assistant', tool_calls: [called] }], 'tool_calls');
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
    const [offered, answered] = provider.requests
      .map(({ text }) => text)
      .filter((text) => text.includes(QUESTION));
    for (const tool of ['agents_list', 'agents_chat', 'usage_summary']) {
      expect(offered).toContain(tool);
    }
    // The model got the tool's result: the agent itself.
    const result = JSON.parse(answered ?? '').messages.at(-1);
    expect(result.role).toBe('tool');
    expect(JSON.stringify(result.content)).toContain(agentId);

    // The rules of the networks go with the last agent.
    await web('DELETE', `/api/agents/${agentId}`);
    await until(async () => (await platform.remains()).containers.length === 0);
  },
  2 * READY_MS,
);
