import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, expect, it } from 'vitest';
import * as z from 'zod';
import { ensureAgentImage } from '../../../dev/agent-image/build-openclaw.js';
import {
  containerName,
  volumeName,
  STATE_DIRECTORY,
  type AgentContainerSpec,
} from '../../../src/docker/containers/container-spec.js';
import { gatewayHealth, gatewayReady } from '../../../src/docker/containers/gateway-probe.js';
import {
  CONFIG_FILE,
  isOfOneAgent,
  openClawConfig,
  openClawEnvironment,
  openClawSecrets,
  SECRETS_FILE,
} from '../../../src/docker/containers/openclaw-config.js';
import { AGENT_RUNTIME_VERSION } from '../../../src/agents/lifecycle/settings.js';
import { tryParseJson } from '../../../src/lib/json.js';
import { readSettings } from '../../../dev/settings.js';
import { testDocker } from '../../support/docker.js';
import { until } from '../../support/until.js';
import { readMemory, writeMemory } from '../../support/agent-memory.js';
import { runInContainer } from '../../support/run-in-container.js';

const fixture = testDocker();
const { containers, docker, host } = fixture;
const tokens = { gatewayToken: 'gateway-token-of-the-test', aiToken: 'ai-token-of-the-test' };
const tokensOfClone = { gatewayToken: 'gateway-token-of-clone', aiToken: 'ai-token-of-clone' };
/** Values that are hard to escape in a file, keyed by the names of tool credentials. */
const hard: Readonly<Record<string, string>> = {
  PLAIN: 'sk-1 = "two" # three',
  LINES: "-----BEGIN-----\n'a' ${PLAIN} \\n\n-----END-----\n",
  QUOTES: `it's \`all\``,
  JSON_KEY: '{"key":"-----BEGIN-----\\nabc\\n"}',
  CARRIAGE: "it's\r\ntwo",
  FOLDER: 'C:\\dir\\',
  SPACES: '  kept  ',
  AFTER: '# comment',
};
/** Milliseconds until OpenClaw is ready: 7 s alone, and several times as long beside other tests. */
const READY_MS = 120_000;
const SLOW = { timeout: 2 * READY_MS };
const SAID = 'Say hello to the platform.';
const NOTES = '.openclaw/workspace/notes.md';
const FINGERPRINT = '.openclaw/config-journal-fingerprint.key';
let image: string;
let spec: AgentContainerSpec;
let provider: Server;
const asked: { authorization: string | undefined; body: string }[] = [];

beforeAll(async () => {
  image = process.env.AGENT_RUNTIME_IMAGE ?? (await buildImage());
  provider = createServer((request, response) => {
    complete(request, response).catch(() => response.destroy());
  });
  provider.listen(0, await host.bridgeAddress());
  await once(provider, 'listening');
}, 20 * 60_000);

afterAll(async () => {
  await fixture.close();
  provider.closeAllConnections();
  provider.close();
});

it(
  'runs real OpenClaw in the hardened profile and answers through the platform',
  SLOW,
  async () => {
    const { port: aiPort } = provider.address() as AddressInfo;
    const config = openClawConfig({
      aiBaseUrl: `http://host.docker.internal:${aiPort}/v1`,
      model: 'auto',
      userConfig: { gateway: { auth: { mode: 'none' } }, models: { mode: 'merge' } },
    });
    spec = await fixture.spec({
      image,
      env: openClawEnvironment(),
      secrets: { ...hard, ...openClawSecrets(tokens) },
      files: { [CONFIG_FILE]: config },
    });
    await host.networks.ensure(spec);
    await host.volumes.ensure(spec, 'test');
    await comeUp(spec);

    const { gatewayToken: token } = tokens;
    expect(await gatewayHealth(spec.port, { timeoutMs: 30_000 })).toMatchObject({
      healthy: true,
      body: { ok: true, status: 'live' },
    });
    expect(await gatewayReady(spec.port, { timeoutMs: 30_000, token })).toMatchObject({
      body: { ready: true, failing: [] },
    });
    expect(await containers.inspect(spec.agentId)).toMatchObject({
      runtimeVersion: AGENT_RUNTIME_VERSION,
    });

    expect((await ask(spec.port, 'wrong')).status).toBe(401);
    const answer = await ask(spec.port, token);
    expect(answer.status).toBe(200);
    expect(await answer.json()).toMatchObject({
      choices: [{ message: { role: 'assistant', content: 'Hello from the stub.' } }],
    });
    expect(asked[0]?.authorization).toBe(`Bearer ${tokens.aiToken}`);
    expect(JSON.parse(asked[0]?.body ?? '')).toMatchObject({ model: 'auto', stream: true });

    const whole = JSON.stringify(await docker.getContainer(containerName(spec.agentId)).inspect());
    for (const secret of Object.values(tokens)) expect(whole).not.toContain(secret);
    expect(await readByItself(spec.agentId)).toMatchObject(hard);
  },
);

it('starts a clone of a running agent with its files and without its identity', SLOW, async () => {
  await writeMemory(docker, spec.agentId, NOTES, 'what it knows');
  const clone: AgentContainerSpec = {
    ...(await fixture.spec({ image })),
    env: spec.env,
    files: spec.files,
    secrets: openClawSecrets(tokensOfClone),
  };
  const parent = { agentId: spec.agentId, userId: spec.userId, volume: volumeName(spec) };
  await host.networks.ensure(clone);
  await host.volumes.copy(clone, { ...parent, leavesOut: isOfOneAgent }, 'test');
  await comeUp(clone);
  expect(await readMemory(docker, clone.agentId, NOTES)).toBe('what it knows');
  // The parent's conversation, tokens and fingerprint.
  const own = [SAID, tokens.gatewayToken, tokens.aiToken, await fingerprintOf(spec.agentId)];
  const [ofParent, ofClone] = await Promise.all(
    [spec, clone].map(({ agentId }) => foundIn(agentId, own)),
  );
  expect(ofParent).toEqual(own);
  expect(ofClone).toEqual([]);
  expect(await foundIn(clone.agentId, Object.values(tokensOfClone))).toHaveLength(2);
  expect((await ask(clone.port, tokens.gatewayToken)).status).toBe(401);
  expect((await gatewayReady(spec.port, { timeoutMs: 30_000 })).ready).toBe(true);
});

it('starts a new container on the memory of a killed one', SLOW, async () => {
  const killed = docker.getContainer(containerName(spec.agentId));
  await killed.kill({ signal: 'SIGKILL' });
  await killed.remove({ force: true });
  await comeUp(spec);
});

async function comeUp(spec: AgentContainerSpec): Promise<void> {
  await containers.ensure(spec);
  await containers.start(spec.agentId);
  try {
    await until(async () => (await gatewayReady(spec.port, { timeoutMs: 1_000 })).ready, READY_MS);
  } catch (error) {
    for await (const { line } of containers.logs(spec.agentId, { tail: 40 })) console.error(line);
    throw error;
  }
}

/** Returns the variables file as parsed by the package that the runtime parses it with. */
async function readByItself(agentId: string): Promise<unknown> {
  const read =
    "const { readFileSync } = require('fs');" +
    "const { parse } = require('/opt/openclaw/node_modules/dotenv');" +
    `console.log(JSON.stringify(parse(readFileSync('${STATE_DIRECTORY}/${SECRETS_FILE}'))))`;
  return JSON.parse(await runInContainer(docker, containerName(agentId), read));
}

/** Returns the key with which a gateway recognizes its own config writes. */
const fingerprintOf = (agentId: string): Promise<string> =>
  runInContainer(
    docker,
    containerName(agentId),
    `process.stdout.write(require('fs').readFileSync('${STATE_DIRECTORY}/${FINGERPRINT}', 'latin1'))`,
  );

/**
 * Returns those of the texts that occur in any file of an agent's memory. The running gateway may replace
 * a file between listing and reading, which ends the script with an error: the search is then repeated.
 */
async function foundIn(agentId: string, texts: readonly string[]): Promise<string[]> {
  const search = `
    const fs = require('fs'), wanted = ${JSON.stringify(texts)};
    const files = fs.readdirSync('${STATE_DIRECTORY}', { recursive: true, withFileTypes: true });
    const all = files.filter((each) => each.isFile()).map(({ name, parentPath }) =>
      fs.readFileSync(parentPath + '/' + name, 'latin1'));
    console.log(JSON.stringify(wanted.filter((each) => all.some((text) => text.includes(each)))))`;
  return until(async () => {
    const output = await runInContainer(docker, containerName(agentId), search);
    return z.array(z.string()).safeParse(tryParseJson(output)).data;
  });
}

async function buildImage(): Promise<string> {
  const { cacheDir } = readSettings(process.env).process;
  return ensureAgentImage({ docker, version: AGENT_RUNTIME_VERSION, cacheDir, log: console.log });
}

function ask(port: number, token: string): Promise<Response> {
  return fetch(`http://127.0.0.1:${port}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
    body: JSON.stringify({
      model: 'openclaw/default',
      user: 'conversation-1',
      messages: [{ role: 'user', content: SAID }],
    }),
    signal: AbortSignal.timeout(120_000),
  });
}

/** Plays an AI provider that always streams the same answer. */
async function complete(request: IncomingMessage, response: ServerResponse): Promise<void> {
  asked.push({ authorization: request.headers.authorization, body: await text(request) });
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  const base = { id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1, model: 'auto' };
  const send = (delta: object, finish_reason: string | null) => {
    const choices = [{ index: 0, delta, finish_reason }];
    response.write(`data: ${JSON.stringify({ ...base, choices })}\n\n`);
  };
  send({ role: 'assistant', content: 'Hello from ' }, null);
  send({ content: 'the stub.' }, null);
  send({}, 'stop');
  response.end('data: [DONE]\n\n');
}
