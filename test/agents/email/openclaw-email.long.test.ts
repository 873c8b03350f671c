import { afterAll, beforeAll, expect, test } from 'vitest';
import { ensureAgentImage } from '../../../dev/agent-image/build-openclaw.js';
import { readSettings } from '../../../dev/settings.js';
import { AGENT_RUNTIME_VERSION } from '../../../src/agents/lifecycle/settings.js';
import { connectDocker } from '../../../src/docker/containers/docker-client.js';
import { answerEmailId } from '../../../workflows/ids.js';
import { textsOfHistories } from '../../support/histories.js';
import { testPlatform, type TestPlatform, type TestUser } from '../../support/platform.js';
import { streamCompletion } from '../../support/provider-stub.js';
import { until } from '../../support/until.js';
import { ResendStandIn } from '../../../dev/email/resend-stand-in.js';

const QUESTION = 'Is the shop by the swordfish open?';
const ANSWER = 'Yes, until the swordfish is sold.';

let resend: ResendStandIn;
let platform: TestPlatform;
let ada: TestUser;

beforeAll(async () => {
  resend = await ResendStandIn.open();
  platform = await testPlatform({
    env: { ...resend.env, AGENT_RUNTIME_IMAGE: await openClawImage() },
  });
  platform.provider.behave((_request, response) =>
    streamCompletion(response, [{ role: 'assistant', content: ANSWER }]),
  );
  ada = await platform.signUp('solo');
  await platform.asOwner(`UPDATE users SET email_verified_at = now() WHERE id = '${ada.id}'`);
}, 20 * 60_000);
afterAll(async () => {
  await platform?.close();
  resend?.close();
});

async function openClawImage(): Promise<string> {
  const given = process.env.AGENT_RUNTIME_IMAGE;
  if (given !== undefined) return given;
  const { cacheDir } = readSettings(process.env).process;
  const docker = connectDocker(process.env.DOCKER_HOST);
  return ensureAgentImage({ docker, version: AGENT_RUNTIME_VERSION, cacheDir, log: console.log });
}

test(
  'an agent on OpenClaw answers a thread of e-mails of its owner',
  async () => {
    const made = await platform.web(ada, 'POST', '/api/agents/provision', {
      body: { name: 'clerk' },
    });
    const { id } = made.body.agent as { id: string };
    await platform.becomes(id, 'active', 5 * 60_000);
    const [agent] = await platform.db
      .asPlatform()
      .query<{ subdomain: string }>('SELECT subdomain FROM agents WHERE id = $id', { id });
    const to = [`${agent?.subdomain}@${resend.domain}`];
    const rowsOf = () =>
      platform.db
        .asPlatform()
        .query<{ id: string; conversation: string; status: string; reason: string | null }>(
          `SELECT id, conversation, status, reason FROM agent_emails WHERE agent_id = $id
          ORDER BY received_at`,
          { id },
        );
    const write = async (mail: object) => {
      const event = resend.receive({ from: `Ada <${ada.email}>`, to, text: QUESTION, ...mail });
      const options = resend.signed(event);
      const answer = await platform.web(undefined, 'POST', '/api/webhooks/email', options);
      expect(answer.body).toEqual({ received: true, handled: true });
      const settled = await until(async () => {
        const row = (await rowsOf()).at(-1);
        return row && !['received', 'asking', 'answering'].includes(row.status) && row;
      }, 150_000);
      expect(settled).toMatchObject({ status: 'answered', reason: null });
      return event.data.message_id;
    };

    const first = await write({});
    expect(resend.sent).toHaveLength(1);
    expect(resend.sent[0]).toMatchObject({
      from: to[0],
      to: [ada.email],
      subject: 'Re: A question',
      headers: { 'In-Reply-To': first },
    });
    expect(resend.sent[0]?.text).toBe(ANSWER);

    const headers = {
      ...resend.mails.values().next().value?.headers,
      references: `${first} <answer@resend.test>`,
    };
    await write({ subject: 'Re: A question', text: 'And tomorrow?', headers });
    expect(resend.sent).toHaveLength(2);
    expect(resend.sent[1]?.headers.References).toContain(first);

    const rows = await rowsOf();
    const [conversation, ...others] = new Set(rows.map((row) => row.conversation));
    expect(others).toEqual([]);
    const chat = `/api/chat?agentId=${id}&conversation=${conversation}`;
    const { messages } = (await platform.web(ada, 'GET', chat)).body as {
      messages: { role: string }[];
    };
    expect(messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'user', 'assistant']);
    // The model got the whole thread.
    const last = platform.provider.requests.at(-1)?.text;
    expect(last).toContain(QUESTION);
    expect(last).toContain('And tomorrow?');

    const { client } = platform.temporal;
    const mail = client.workflow.getHandle(answerEmailId(rows[0]?.id ?? ''));
    expect(await (await mail.describe()).staticSummary()).toBe(`E-mail ${rows[0]?.id}`);
    const histories = (await textsOfHistories(client)).texts.join('\n');
    const logged = platform.logged.join('\n');
    for (const text of ['swordfish', 'And tomorrow?', resend.apiKey, resend.secret]) {
      expect([text, histories.includes(text), logged.includes(text)]).toEqual([text, false, false]);
    }
  },
  10 * 60_000,
);
