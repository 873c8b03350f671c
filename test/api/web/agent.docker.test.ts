import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { actionsOn, agentWithActions } from '../../support/agent-actions.js';
import { allEvents, send } from '../../support/http.js';
import type { TestPlatform, TestUser } from '../../support/platform.js';

let platform: TestPlatform;
let ada: TestUser;
let agentId: string;

beforeAll(async () => {
  ({ platform, ada, agentId } = await agentWithActions());
});
afterAll(() => platform?.close());

const { act, setCredential, readAgent: check } = actionsOn(() => ({ platform, ada, agentId }));

const succeeded = {
  id: expect.any(String),
  operation: 'configure',
  operationId: expect.any(String),
  status: 'succeeded',
  error: null,
};

describe('agent action', () => {
  test('accepts four actions and refuses any other', async () => {
    for (const body of [{ action: 'dance', agentId }, { agentId }, {}]) {
      const refused = await platform.web(ada, 'POST', '/api/agent', { body });
      expect([refused.status, refused.body.error]).toEqual([
        400,
        'action must be one of chat, create-session, update-skill, set-credential',
      ]);
    }
  });

  test.each([
    ['chat', {}, 'message is required'],
    ['chat', { message: 'hi', agentId: undefined }, 'agentId is required'],
    ['update-skill', { enabled: true }, 'skill is required'],
    ['update-skill', { skill: 'weather' }, 'enabled or config is required'],
    ['update-skill', { skill: '__proto__', enabled: true }, 'skill must begin with'],
    ['update-skill', { skill: 'a/../b', enabled: true }, 'skill must begin with'],
    ['update-skill', { skill: 'weather', config: [] }, 'config must be an object'],
    ['update-skill', { skill: 'x', config: { x: 'x'.repeat(65_536) } }, 'at most 64 KiB'],
    ['set-credential', { name: 'TOKEN' }, 'value is required'],
    ['set-credential', { name: 'TOKEN', value: '' }, 'value is required'],
    ['set-credential', { name: 'TOKEN', value: 'é'.repeat(4_097) }, 'value must be at most 8 KiB'],
    ['set-credential', { name: 'TOKEN', value: 'a\0b' }, 'cannot be stored'],
    ['set-credential', { name: 'token', value: 'x' }, 'name must begin with a capital letter'],
    ['set-credential', { name: 'A'.repeat(65), value: 'x' }, 'at most 64 capital letters'],
    ['set-credential', { name: 'A=B', value: 'x' }, 'name must begin with a capital letter'],
  ])('%s with a missing or invalid field returns 400 (%#)', async (action, body, error) => {
    const refused = await act(action, body);
    expect(refused.status).toBe(400);
    expect(refused.body.error).toContain(error);
  });

  test.each([
    'PATH',
    'HOME',
    'NODE_OPTIONS',
    'LD_PRELOAD',
    'OPENCLAW_GATEWAY_TOKEN',
    'HTTPS_PROXY',
  ])('set-credential refuses the reserved name %s', async (name) => {
    const refused = await setCredential(name, 'x');
    expect([refused.status, refused.body.error]).toEqual([
      400,
      'name is reserved for the agent runtime',
    ]);
  });

  test("an action on another user's or a missing agent returns 404, and without a session 401", async () => {
    const bob = await platform.signUp('network');
    const actions = [
      { action: 'chat', message: 'hi' },
      { action: 'create-session' },
      { action: 'update-skill', skill: 'weather', enabled: false },
      { action: 'set-credential', name: 'TOKEN', value: 'x' },
    ];
    for (const body of actions) {
      const asked = { ...body, agentId };
      const missing = { ...body, agentId: randomUUID() };
      const answers = [
        await platform.web(bob, 'POST', '/api/agent', { body: asked }),
        await platform.web(bob, 'POST', '/api/agent', { body: missing }),
      ];
      for (const { status, body: reported } of answers) {
        expect([status, reported.error]).toEqual([404, 'Agent not found']);
      }
      const nobody = await platform.web(undefined, 'POST', '/api/agent', { body: asked });
      expect(nobody.status).toBe(401);
    }
    expect((await platform.web(bob, 'GET', `/api/agent?agentId=${agentId}`)).status).toBe(404);
  });

  test('an action counts towards the rate limit of /api/agent', async () => {
    const asked = await platform.web(ada, 'POST', '/api/agent', { body: {} });
    expect(asked.headers.get('ratelimit-limit')).toBe('60');
  });
});

describe('agent conversation', () => {
  test('a created conversation can be continued, and its Idempotency-Key returns it again', async () => {
    const headers = { 'idempotency-key': randomUUID() };
    const made = await act('create-session', {}, { headers });
    expect(made.status).toBe(201);
    expect(made.body).toEqual({
      agentId,
      conversation: expect.any(String),
      createdAt: expect.stringMatching(/Z$/),
    });
    expect((await act('create-session', {}, { headers })).body).toEqual(made.body);
    expect((await act('create-session')).body.conversation).not.toBe(made.body.conversation);

    const { conversation } = made.body;
    const answer = await act('chat', { message: 'hello', conversation });
    expect(answer.status).toBe(200);
    expect(answer.body).toMatchObject({
      agentId,
      conversation,
      message: { role: 'assistant', content: 'said: hello' },
    });
    const path = `/api/chat?agentId=${agentId}&conversation=${conversation}`;
    expect((await platform.web(ada, 'GET', path)).body.messages).toHaveLength(2);
  });

  test('streams the answer on request', async () => {
    const response = await send(platform.webUrl, 'POST', '/api/agent', {
      body: { action: 'chat', agentId, message: 'hello there' },
      headers: { cookie: ada.cookie, accept: 'text/event-stream' },
    });
    const events = await allEvents(response);
    expect(events.at(-1)).toMatchObject({
      event: 'done',
      data: { agentId, message: { content: 'said: hello there' } },
    });
    expect(events[0]?.event).toBe('delta');
  });
});

describe('agent skill', () => {
  test("update-skill changes the skill in the agent's configuration and keeps the rest", async () => {
    const id = await platform.runningAgent(ada, {
      config: {
        note: 'mine',
        runtime: {
          skills: { allowBundled: ['weather'], entries: { weather: { env: { A: 'b' } } } },
        },
      },
    });
    const changed = await act('update-skill', {
      agentId: id,
      skill: 'weather',
      enabled: false,
      config: { unit: 'K' },
    });
    expect([changed.status, changed.body]).toEqual([202, { ...succeeded, id }]);
    expect((await act('update-skill', { agentId: id, skill: 'notes', enabled: true })).status).toBe(
      202,
    );
    const { config } = (await platform.web(ada, 'GET', `/api/agents/${id}/config`)).body;
    expect(config).toEqual({
      note: 'mine',
      runtime: {
        skills: {
          allowBundled: ['weather'],
          entries: {
            weather: { env: { A: 'b' }, enabled: false, config: { unit: 'K' } },
            notes: { enabled: true },
          },
        },
      },
    });
    expect(await check(id)).toEqual({
      agentId: id,
      status: 'running',
      actions: ['chat', 'create-session', 'update-skill', 'set-credential'],
      skills: [
        { name: 'notes', enabled: true },
        { name: 'weather', enabled: false },
      ],
      credentials: [],
    });
  });
});
