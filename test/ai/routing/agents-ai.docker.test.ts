import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { backendEndpoints } from '../../../api/backend/backend.js';
import { agentAiEndpoints } from '../../../api/containers/ai.js';
import { readAgentTokens } from '../../../src/agents/credentials/agent-secrets.js';
import { call, send } from '../../support/http.js';
import {
  ADMIN_EMAIL,
  testPlatform,
  type TestPlatform,
  type TestUser,
} from '../../support/platform.js';
import { completion, sendJson } from '../../support/provider-stub.js';

let platform: TestPlatform;
let user: TestUser;
let agentId: string;
let token: string;

beforeAll(async () => {
  platform = await testPlatform({ workers: false });
  user = await platform.signUp('network');
  ({ agentId, token } = await newAgent({ model: 'gpt-4' }));
});
afterEach(() => platform.provider.behave());
afterAll(() => platform?.close());

/** Creates an agent without starting it and returns the token its container will use. */
async function newAgent(body: object, owner = user) {
  const made = await platform.backend(owner, 'POST', '/api/deployments', {
    body: { name: `agent ${randomUUID()}`, ...body },
  });
  const id: string = made.body.id;
  return { agentId: id, token: await aiTokenOf(id) };
}

async function aiTokenOf(id: string): Promise<string> {
  const tokens = await readAgentTokens(platform.db.asPlatform(), platform.secrets, id);
  for (const candidate of tokens) {
    if ((await ask('/v1/models', candidate)).status === 200) return candidate;
  }
  throw new Error("none of the agent's tokens is accepted by the AI listener");
}

const ask = (path: string, bearer: string | undefined, body?: unknown) =>
  call(platform.agentsUrl, body === undefined ? 'GET' : 'POST', path, {
    body,
    headers: bearer === undefined ? {} : { authorization: `Bearer ${bearer}` },
  });

const HELLO = { model: 'auto', messages: [{ role: 'user', content: 'hello' }] };

describe("the agents' AI listener", () => {
  test(
    "the agents' AI listener accepts only tokens of existing agents",
    { tags: 'attack' },
    async () => {
      const gateway = await platform.backend(user, 'GET', `/api/agents/${agentId}/token`);
      for (const bearer of [undefined, 'wrong', platform.internalKey, gateway.body.token]) {
        for (const body of [undefined, HELLO]) {
          const path = body ? '/v1/chat/completions' : '/v1/models';
          const refused = await ask(path, bearer, body);
          expect([refused.status, refused.body.error.message]).toEqual([401, 'Unauthorized']);
        }
      }
      expect(platform.provider.requests).toHaveLength(0);
    },
  );

  test(
    "the agents' AI listener limits each agent as the backend limits each key",
    { tags: 'attack' },
    () => {
      const { agents, backend } = platform.dependencies;
      for (const endpoints of [agentAiEndpoints(agents), backendEndpoints(backend)]) {
        const completions = endpoints.find(({ path }) => path === '/v1/chat/completions');
        expect(completions?.limitOfCaller?.max).toBe(600);
        expect(completions?.atOnce?.perOwner).toBe(200);
      }
    },
  );

  test("the agents' AI listener lists one model", async () => {
    expect((await ask('/v1/models', token)).body).toEqual({
      object: 'list',
      data: [{ id: 'auto', object: 'model', created: 0, owned_by: 'platform' }],
    });
  });

  test('an AI call makes one database query, for the calling agent', async () => {
    const agent = await newAgent({ model: 'gpt-4' });
    const functions = vi.spyOn(platform.db, 'call');
    const tenants = [vi.spyOn(platform.db, 'asUser'), vi.spyOn(platform.db, 'asPlatform')];
    try {
      for (let n = 0; n < 3; n++) await ask('/v1/chat/completions', agent.token, HELLO);
      // The plan `network` has no quota, so no quota query is expected.
      const asked = functions.mock.calls.map(([{ name }]) => name);
      // Usage is written in the background.
      expect(asked.filter((name) => name !== 'settle_usage')).toEqual(
        Array(3).fill('find_agent_callers'),
      );
      for (const tenant of tenants) expect(tenant).not.toHaveBeenCalled();
    } finally {
      functions.mockRestore();
      for (const tenant of tenants) tenant.mockRestore();
    }
  });

  test(
    "refuses an agent that is being removed and applies a change of its owner's plan at once",
    { tags: 'attack' },
    async () => {
      const owner = await platform.signUp('network', ADMIN_EMAIL);
      const admin = (is: boolean) =>
        platform.asOwner(`UPDATE users SET is_admin = ${is} WHERE id = '${owner.id}'`);
      await admin(false);
      const made = await platform.backend(owner, 'POST', '/api/deployments', {
        body: { name: `agent ${randomUUID()}`, model: 'gpt-4' },
      });
      const own = await aiTokenOf(made.body.id);
      const status = async () => (await ask('/v1/chat/completions', own, HELLO)).status;
      const change = (sql: string) => platform.asOwner(sql);
      expect(await status()).toBe(200);
      await change(`UPDATE subscriptions SET status = 'cancelled' WHERE user_id = '${owner.id}'`);
      expect(await status()).toBe(402);
      await change(
        `UPDATE subscriptions SET status = 'active', period_start = now() - interval '1 day',
              period_end = now() - interval '1 s'
        WHERE user_id = '${owner.id}'`,
      );
      expect(await status()).toBe(402);
      await admin(true);
      expect(await status()).toBe(200);
      await change(`UPDATE agents SET desired = 'deleted' WHERE id = '${made.body.id}'`);
      expect(await status()).toBe(401);
    },
  );

  test("forwards a request unchanged except for the agent's model and the platform's key", async () => {
    const full = {
      ...HELLO,
      tools: [{ type: 'function', function: { name: 'look', parameters: { type: 'object' } } }],
      tool_choice: 'auto',
      temperature: 0.25,
      logit_bias: { 50256: -100 },
    };
    const answer = await ask('/v1/chat/completions', token, full);
    expect([answer.status, answer.body]).toEqual([200, completion('said: hello', 'gpt-4')]);
    const asked = platform.provider.requests.at(-1);
    expect(asked?.path).toBe('/v1/chat/completions');
    expect(asked?.authorization).toBe(`Bearer ${platform.provider.apiKey}`);
    expect(asked?.body).toEqual({ ...full, model: 'gpt-4' });
  });

  const onBehalfOf = async (bearer: string): Promise<unknown> => {
    const before = platform.provider.requests.length;
    const { status, body } = await ask('/v1/chat/completions', bearer, HELLO);
    const asked = platform.provider.requests.slice(before).map((request) => request.body.model);
    return status === 200 ? asked : [status, body.error.code, ...asked];
  };
  const onPlan = (plan: string, id: string) =>
    platform.asOwner(
      `UPDATE subscriptions SET plan = '${plan}'
        WHERE user_id = (SELECT user_id FROM agents WHERE id = '${id}')`,
    );

  test(
    'requests the model of config.model only for custom agents',
    { tags: 'attack' },
    async () => {
      const config = { model: 'my-own-model' };
      const custom = await newAgent({ model: 'custom', config });
      expect(await onBehalfOf(custom.token)).toEqual(['my-own-model']);
      const other = await newAgent({ model: 'gpt-4', config });
      expect(await onBehalfOf(other.token)).toEqual(['gpt-4']);
    },
  );

  test('refuses models that the plan does not include', { tags: 'attack' }, async () => {
    const owner = await platform.signUp('network');
    const make = (body: object) => newAgent(body, owner);
    const gpt4 = await make({ model: 'gpt-4' });
    const unknown = await make({ model: 'custom', config: { model: 'my-own-model' } });
    const dear = await make({ model: 'custom', config: { model: 'openai/gpt-6.1-sol' } });
    const cheap = await make({ model: 'custom', config: { model: 'gpt-6-luna' } });
    expect(await onBehalfOf(dear.token)).toEqual(['gpt-6.1-sol']);
    await onPlan('solo', gpt4.agentId);
    for (const { token: bearer } of [gpt4, unknown, dear]) {
      expect(await onBehalfOf(bearer)).toEqual([403, 'MODEL_RESTRICTED']);
    }
    expect(await onBehalfOf(cheap.token)).toEqual(['gpt-6-luna']);
    const refused = await ask('/v1/chat/completions', gpt4.token, HELLO);
    expect(refused.body.error.allowedModels).toContain('openai/gpt-6-luna');
    await onPlan('collective', gpt4.agentId);
    expect(await onBehalfOf(dear.token)).toEqual(['gpt-6.1-sol']);
    expect(await onBehalfOf(unknown.token)).toEqual([403, 'MODEL_RESTRICTED']);
  });

  test("requests the plan's best available model if the default one is not included", async () => {
    const owner = await platform.signUp('network');
    const { agentId: id, token: bearer } = await newAgent({}, owner);
    await onPlan('solo', id);
    expect(await onBehalfOf(bearer)).toEqual(['gpt-6-luna']);
    await onPlan('collective', id);
    expect(await onBehalfOf(bearer)).toEqual(['gpt-6.1-sol']);
  });

  test('forwards a stream event by event without buffering', async () => {
    const pieces = [
      'data: {"choices":[{"index":0,"delta":{"content":"é🚀"},"x":1}]}\n\n',
      ': odd\r\ndata: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\r\n\r\n',
      'data: [DONE]\n\n',
    ];
    const expected = [
      'data: {"choices":[{"index":0,"delta":{"content":"é🚀"},"x":1}]}\n\n',
      'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n',
      'data: [DONE]\n\n',
    ];
    let next = () => {};
    platform.provider.behave(async (_request, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' });
      for (const piece of pieces) {
        const taken = new Promise<void>((resolve) => (next = resolve));
        response.write(piece);
        await taken;
      }
      response.end();
    });
    for (const page of ['/docs', '/openapi.json', '/metrics']) {
      expect((await call(platform.agentsUrl, 'GET', page)).status).toBe(404);
    }
    const response = await send(platform.agentsUrl, 'POST', '/v1/chat/completions', {
      body: { ...HELLO, stream: true },
      headers: { authorization: `Bearer ${token}` },
    });
    expect(response.headers.get('content-type')).toBe('text/event-stream; charset=utf-8');
    const chunks: Buffer[] = [];
    const received = () => Buffer.concat(chunks).toString();
    if (!response.body) throw new Error('no body');
    for await (const chunk of response.body) {
      chunks.push(Buffer.from(chunk));
      // The provider sends the next event only after this one arrived, so buffering would hang.
      if (expected.some((_, n) => received() === expected.slice(0, n + 1).join(''))) next();
    }
    expect(received()).toBe(expected.join(''));
  });

  test.each([
    [429, 429, 'The AI provider openai limits its requests'],
    [400, 400, 'The AI provider openai does not accept this request'],
    [401, 502, 'The AI provider openai does not answer (bad_key)'],
    [500, 502, 'The AI provider openai does not answer (overloaded)'],
    [503, 502, 'The AI provider openai does not answer (overloaded)'],
  ])(
    "answers the provider's %d for every model with %d and hides the provider's message",
    async (theirs, ours, said) => {
      platform.provider.behave((_request, response) =>
        sendJson(response, theirs, { error: { message: 'Incorrect API key sk-provider-key' } }),
      );
      const refused = await ask('/v1/chat/completions', token, HELLO);
      expect([refused.status, refused.body.error.message]).toEqual([ours, said]);
      expect(refused.text).not.toContain('sk-provider');
      expect(platform.logged.join()).not.toContain('sk-provider-key');
    },
  );

  test('answers 502 when the provider sends what is not HTTP, or hangs up', async () => {
    platform.provider.behave((_request, response) => {
      response.socket?.end('what?\r\n\r\n');
    });
    expect((await ask('/v1/chat/completions', token, HELLO)).status).toBe(502);
    platform.provider.behave((_request, response) => {
      response.destroy();
    });
    expect((await ask('/v1/chat/completions', token, HELLO)).status).toBe(502);
  });

  test('reports a broken stream as an error instead of ending it normally', async () => {
    platform.provider.behave((_request, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      const chunk = { choices: [{ index: 0, delta: { content: 'half' } }] };
      response.write(`data: ${JSON.stringify(chunk)}\n\n`, () => response.destroy());
    });
    const { text } = await ask('/v1/chat/completions', token, { ...HELLO, stream: true });
    expect(text).toContain('half');
    expect(text).toContain(
      '"error":{"message":"The answer was interrupted: retry","type":"unreachable"}',
    );
    expect(text).not.toContain('[DONE]');
  });

  test('records the usage of a call that the agent left before the answer', async () => {
    let answer: (() => void) | undefined;
    platform.provider.behave((_request, response) => {
      answer = () => sendJson(response, 200, completion('too late'));
    });
    const rows = async () =>
      (await platform.db.asPlatform().query('SELECT FROM usage_logs')).length;
    await platform.meter.flushed();
    const before = await rows();
    const leaving = new AbortController();
    const asked = send(platform.agentsUrl, 'POST', '/v1/chat/completions', {
      body: HELLO,
      headers: { authorization: `Bearer ${token}` },
      signal: leaving.signal,
    });
    await expect.poll(() => answer).toBeDefined();
    leaving.abort();
    await expect(asked).rejects.toThrow();
    answer?.();
    await expect.poll(rows).toBe(before + 1);
  });

  test.each([[{}], [{ messages: [] }], [{ messages: 'hello' }]])(
    'refuses %j without calling a provider',
    async (body) => {
      const before = platform.provider.requests.length;
      expect((await ask('/v1/chat/completions', token, body)).status).toBe(400);
      expect(platform.provider.requests).toHaveLength(before);
    },
  );

  test(
    "the agents' AI listener serves no other endpoint of the platform",
    { tags: 'attack' },
    async () => {
      for (const path of ['/api/agents', '/health', '/api/health', '/api/auth/session']) {
        expect((await ask(path, token)).status).toBe(404);
      }
    },
  );
});

test('without a provider the answer names the setting to make', async () => {
  const without = await testPlatform({
    workers: false,
    env: { OPENAI_API_KEY: undefined, OPENAI_BASE_URL: undefined, AI_PROVIDER: 'groq' },
  });
  try {
    const owner = await without.signUp('solo');
    const made = await without.backend(owner, 'POST', '/api/agents', { body: { name: 'x' } });
    const tokens = await readAgentTokens(without.db.asPlatform(), without.secrets, made.body.id);
    const answers = await Promise.all(
      tokens.map((bearer) =>
        call(without.agentsUrl, 'POST', '/v1/chat/completions', {
          body: HELLO,
          headers: { authorization: `Bearer ${bearer}` },
        }),
      ),
    );
    const refused = answers.find(({ status }) => status === 503);
    expect(refused?.body.error.message).toContain('GROQ_API_KEY');
  } finally {
    await without.close();
  }
});
