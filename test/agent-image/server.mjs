// An agent runtime for tests with the real one's interface, a fast start and controllable behaviour:
// - by the environment or the runtime's secrets file: START_DELAY_MS, START_WORK_MS (CPU time),
//   ANSWER_DELAY_MS, EXIT_AT_START (exit code), PRINT_LINES (count);
// - by `POST /test` on the gateway's port with JSON: {"mode": "healthy" | "unhealthy" | "hang" |
//   "draining"}, {"startsAfter": 2} (probes of `/readyz`), {"open": true} (no token is needed), {"answerDelayMs": 500},
//   {"stopDelayMs": 500}, {"echo": true} (answers without the platform's AI), {"exit": 1}, {"print": {"lines": 10, "stream": "stderr", "text": "..."}};
// - by its configuration: {"test": {"exitAtStart": 3}}, and channels, which fail `/readyz` as long as one of
//   their tokens contains "rejected".
// - by a skill of the name "exit-at-start".
//
// The answer to `POST /test` has the messages that were sent more than once, `askedTwice`.
//
// `POST /test/fetch {"url"}` reports whether the container can reach an address.
import { existsSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { once } from 'node:events';

const { env } = process;
const secrets = '/home/node/.openclaw/.env';
if (existsSync(secrets)) process.loadEnvFile(secrets);
const token = env.OPENCLAW_GATEWAY_TOKEN ?? '';
const startedAt = Date.now();
const behaviour = {
  mode: 'healthy',
  answerDelayMs: Number(env.ANSWER_DELAY_MS ?? 0),
  stopDelayMs: 0,
  startsAfter: 0,
  open: false,
  echo: false,
  askedTwice: [],
};
/** The messages of the last chats. */
const asked = [];
const MAX_ASKED = 500;

const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

const skill = '/home/node/.openclaw/skills/exit-at-start/SKILL.md';
const asSkill = existsSync(skill) ? 3 : undefined;
const exitAtStart = env.EXIT_AT_START ?? configuration().test?.exitAtStart ?? asSkill;
if (exitAtStart !== undefined) {
  console.error('exiting at start as configured');
  process.exit(Number(exitAtStart));
}
await wait(Number(env.START_DELAY_MS ?? 0));
// Burns CPU time as a large program does while it loads; many concurrent starts take longer.
while (process.cpuUsage().user < Number(env.START_WORK_MS ?? 0) * 1_000);
print({ lines: Number(env.PRINT_LINES ?? 0) });

const server = createServer((request, response) => {
  answer(request, response).catch((error) => {
    console.error(String(error));
    if (!response.headersSent) json(response, 500, { error: { message: String(error) } });
    else response.destroy();
  });
});
server.listen(18789, '0.0.0.0', () => console.log('gateway ready on 18789'));
process.on('SIGTERM', () => setTimeout(() => process.exit(0), behaviour.stopDelayMs));

async function answer(request, response) {
  const { pathname } = new URL(request.url, 'http://localhost');
  if (pathname === '/test') return json(response, 200, obey(await body(request)));
  if (pathname === '/test/fetch') return json(response, 200, await tryFetch(await body(request)));
  if (behaviour.mode === 'hang') return;
  if (pathname === '/healthz' || pathname === '/health') {
    const ok = behaviour.mode !== 'unhealthy';
    return json(response, ok ? 200 : 503, { ok, status: 'live' });
  }
  if (pathname === '/startupz') {
    const ok = behaviour.mode === 'healthy';
    return json(response, ok ? 200 : 503, { ok, status: ok ? 'started' : behaviour.mode });
  }
  if (pathname === '/readyz') {
    const failing = behaviour.mode === 'healthy' ? rejectedChannels() : [behaviour.mode];
    if (behaviour.startsAfter > 0) failing.push(`${behaviour.startsAfter--} probes`);
    const ready = failing.length === 0;
    return json(response, ready ? 200 : 503, { ready, failing, uptimeMs: Date.now() - startedAt });
  }
  if (pathname === '/v1/chat/completions') {
    const isRight = request.headers.authorization === `Bearer ${token}` && token !== '';
    if (!isRight && !behaviour.open) {
      return json(response, 401, { error: { message: 'Unauthorized', type: 'unauthorized' } });
    }
    return chat(await body(request), response);
  }
  json(response, 404, { error: { message: 'Not found' } });
}

async function chat(input, response) {
  const message = JSON.stringify(input.messages?.at(-1)?.content ?? '');
  if (asked.includes(message)) behaviour.askedTwice.push(message.slice(0, 200));
  asked.push(message);
  if (asked.length > MAX_ASKED) asked.shift();
  await wait(behaviour.answerDelayMs);
  const content = await reply(input);
  const base = { id: 'chatcmpl-test', created: Math.floor(Date.now() / 1000), model: input.model };
  if (!input.stream) {
    const choice = { index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' };
    return json(response, 200, { ...base, object: 'chat.completion', choices: [choice] });
  }
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  const send = (delta, finish_reason) => {
    const choices = [{ index: 0, delta, finish_reason }];
    response.write(
      `data: ${JSON.stringify({ ...base, object: 'chat.completion.chunk', choices })}\n\n`,
    );
  };
  send({ role: 'assistant' }, null);
  for (const part of content.match(/.{1,8}/gs) ?? []) send({ content: part }, null);
  send({}, 'stop');
  response.end('data: [DONE]\n\n');
}

/** Answers by the platform's AI if the configuration names a provider, else echoes the last message. */
async function reply(input) {
  const provider = configuration().models?.providers?.platform;
  const last = input.messages?.at(-1)?.content ?? '';
  if (!provider || behaviour.echo)
    return `echo: ${typeof last === 'string' ? last : JSON.stringify(last)}`;
  const result = await fetch(`${provider.baseUrl}/chat/completions`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      authorization: `Bearer ${env.PLATFORM_AI_TOKEN}`,
    },
    body: JSON.stringify({ model: provider.models[0].id, messages: input.messages }),
    signal: AbortSignal.timeout(60_000),
  });
  if (!result.ok)
    throw new Error(`the AI endpoint answered ${result.status}: ${await result.text()}`);
  return (await result.json()).choices[0].message.content;
}

function rejectedChannels() {
  const named = (value) => env[/^\$\{(\w+)\}$/.exec(value)?.[1] ?? ''] ?? value;
  return Object.entries(configuration().channels ?? {})
    .filter(([, entry]) => Object.values(entry).some((value) => /rejected/.test(named(value))))
    .map(([name]) => name);
}

function configuration() {
  const file = env.OPENCLAW_CONFIG_PATH ?? '/home/node/.openclaw/openclaw.json';
  return existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : {};
}

function obey(order) {
  if (order.mode !== undefined) behaviour.mode = order.mode;
  if (order.answerDelayMs !== undefined) behaviour.answerDelayMs = order.answerDelayMs;
  if (order.stopDelayMs !== undefined) behaviour.stopDelayMs = order.stopDelayMs;
  if (order.startsAfter !== undefined) behaviour.startsAfter = order.startsAfter;
  if (order.open !== undefined) behaviour.open = order.open;
  if (order.echo !== undefined) behaviour.echo = order.echo;
  if (order.print !== undefined) print(order.print);
  if (order.exit !== undefined) setTimeout(() => process.exit(order.exit), 20);
  return behaviour;
}

function print({ lines, stream = 'stdout', text = 'line' }) {
  for (let number = 1; number <= lines; number++) process[stream].write(`${text} ${number}\n`);
}

async function tryFetch({ url }) {
  try {
    const result = await fetch(url, { signal: AbortSignal.timeout(2_000) });
    return { reached: true, status: result.status };
  } catch (error) {
    return { reached: false, reason: String(error.cause?.code ?? error.name) };
  }
}

async function body(request) {
  let text = '';
  request.on('data', (chunk) => (text += chunk));
  await once(request, 'end');
  return text === '' ? {} : JSON.parse(text);
}

function json(response, status, value) {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify(value));
}
