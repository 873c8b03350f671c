import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { rm, writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { promisify } from 'node:util';
import type { temporal } from '@temporalio/proto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ensureAgentImage } from '../../dev/agent-image/build-openclaw.js';
import { tour } from '../../dev/tour.js';
import { AGENT_RUNTIME_VERSION } from '../../src/agents/lifecycle/settings.js';
import { readSettings } from '../../dev/settings.js';
import { tryParseJson } from '../../src/lib/json.js';
import { connectDocker } from '../../src/docker/containers/docker-client.js';
import { provisionAgentId, superviseAgentId } from '../../workflows/ids.js';
import { RealPlatform } from './platform.js';
import { streamCompletion } from '../support/provider-stub.js';
import { until } from '../support/until.js';

const ANSWER = 'I am the agent of this tour.';
const FILE = 'notes/today.md';

const STARTED = /^(succeeded|running)$/;
const FEEDS = path.join(tmpdir(), `aps-tour-feeds-${process.pid}.json`);
const RSS = `<rss version="2.0"><channel><title>News</title>
  <item><guid>1</guid><title>The tour has arrived</title></item></channel></rss>`;

let provider: Server;

let platform: RealPlatform;

beforeAll(async () => {
  provider = createServer((request, response) => {
    if (request.url === '/rss') {
      response.setHeader('content-type', 'application/rss+xml').end(RSS);
      return;
    }
    complete(request, response).catch(() => response.destroy());
  });
  provider.listen(0, '127.0.0.1');
  await once(provider, 'listening');
  const { port } = provider.address() as AddressInfo; // a TCP listener's port
  const feed = { id: 'hacker-news', name: 'News', description: 'News', kind: 'rss' };
  await writeFile(FEEDS, JSON.stringify([{ ...feed, url: `http://127.0.0.1:${port}/rss` }]));
  platform = await RealPlatform.make({
    AGENT_RUNTIME_IMAGE: process.env.AGENT_RUNTIME_IMAGE ?? (await openClawImage()),
    AI_PROVIDER: 'openrouter',
    OPENROUTER_BASE_URL: `http://127.0.0.1:${port}/v1`,
    OPENROUTER_API_KEY: 'key-of-the-stub',
    AGENT_EGRESS: 'guarded',
    DATAFEEDS_FILE: FEEDS,
    OUTBOUND_ALLOW: `127.0.0.1:${port}`,
    VIDEO_API_TOKEN: 'local',
  });
  await platform.start();
}, 20 * 60_000);

afterAll(async () => {
  await platform?.close();
  provider?.closeAllConnections();
  provider?.close();
  await rm(FEEDS, { force: true });
});

test('npm start prints the tour for its own addresses', () => {
  expect(platform.output).toContain(tour({ hasProvider: true, hasVideos: true, ...addresses() }));
});

test('npm start and the list of hosts report what agents can reach', async () => {
  const guarded = 'Agents reach the internet and the AI listener, and no private network.';
  await until(() => Promise.resolve(platform.output.includes(guarded)));
  const isGuarded = async () => {
    const answer = await fetch(`${platform.backendUrl}/api/hosts`, {
      headers: { authorization: `Bearer ${platform.internalApiKey}` },
    });
    const [host] = (await answer.json()) as { network: string; networkReason: unknown }[];
    return host?.network === 'guarded' && host.networkReason === null;
  };
  // Polls slowly, because the tour shares the platform's rate limit.
  await until(isGuarded, undefined, 2000);
});

test('the tour works as written on real OpenClaw and is visible in Temporal', async () => {
  const printed = await paste(tour({ hasProvider: true, hasVideos: true, ...addresses() }));
  // Each answer is printed over several lines, from its `{` on.
  // The commands print only the first lines of two answers.
  const answers = printed
    .split(/\n(?=\{)/)
    .map((text) => JSON.parse(tryParseJson(text) === undefined ? JSON.stringify(text) : text));
  const [account, login, plan, running, opened, answer, log, ...rest] = answers;
  const [written, seen, changed, committed, commits, rewritten, differs, ...last] = rest;
  const [mcp, invite, again, feeds, feed, video, graph, trace, ...end] = last;
  const [stop, start, history, removal] = end;
  expect(account).toMatchObject({ email: 'ada@example.com', name: 'Ada' });
  expect(login).toMatchObject({ ok: true });
  expect(plan).toMatchObject({ success: true, plan: 'solo' });
  expect(running).toMatchObject({
    agent: { status: 'running', openclawVersion: AGENT_RUNTIME_VERSION },
  });
  expect(running.agent.url).toMatch(/^http:\/\/my-agent-[0-9a-f]{8}\.localhost:\d+$/);
  expect(new URL(running.agent.url).port).toBe(new URL(platform.webUrl).port);
  expect(opened.url).toContain(`${running.agent.url}/-/open?ticket=`);
  expect(answer).toMatchObject({ message: { role: 'assistant', content: ANSWER } });
  expect(log.lines.length).toBeGreaterThan(0);
  expect(written).toMatchObject({ ok: true, path: 'notes/today.md', size: 5 });
  expect(seen).toMatchObject({ message: { role: 'assistant', content: 'It says: hello' } });
  expect(changed).toMatchObject({ isGitRepo: true, hasChanges: true });
  expect(committed).toMatchObject({ ok: true, committed: true, pushed: false });
  expect(commits).toMatchObject({ commits: [{ hash: committed.hash, subject: 'notes' }] });
  expect(rewritten).toMatchObject({ ok: true, size: 7 });
  expect(differs).toMatchObject({ ok: true, unstaged: expect.stringContaining('+goodbye') });
  expect(JSON.parse(mcp.result.content[0].text)).toMatchObject([{ id: running.agent.id }]);
  expect(invite).toMatchObject({ valid: true, remaining: 0 });
  expect(again).toMatchObject({ valid: false });
  expect(feeds).toMatchObject({ feeds: [{ id: 'hacker-news' }], count: 1 });
  expect(JSON.stringify(feed)).toContain('The tour has arrived');
  expect(video).toMatchObject({ video: { status: 'completed', contentType: 'video/mp4' } });
  expect(graph.nodes).toContainEqual(
    expect.objectContaining({ id: running.agent.id, type: 'agent', status: 'running' }),
  );
  expect(JSON.stringify(trace)).toContain('spans');
  expect(stop).toMatchObject({ operation: 'stop', status: 'succeeded' });
  // On a busy machine, OpenClaw takes longer to start than the request may wait.
  expect(start).toMatchObject({ operation: 'start', status: expect.stringMatching(STARTED) });
  expect(history.operations).toMatchObject([
    { operation: 'start', status: expect.stringMatching(STARTED) },
    { operation: 'stop', status: 'succeeded' },
    { operation: 'provision', status: 'succeeded' },
  ]);
  expect(removal).toMatchObject({ deleted: true });

  const agentId: string = running.agent.id;
  await platform.withTemporal(async ({ workflow }) => {
    const supervisor = workflow.getHandle(superviseAgentId(agentId));
    await supervisor.result();
    const provisioning = await workflow.getHandle(provisionAgentId(agentId)).describe();
    expect(provisioning.status.name).toBe('COMPLETED');
    const { events } = await supervisor.fetchHistory();
    expect(updatesIn(events ?? [])).toEqual(['stop', 'start', 'delete']);
  });
  await until(async () => {
    const { containers, networks, volumes } = await platform.remains(agentId);
    return containers.length + networks.length + volumes.length === 0;
  });
});

const addresses = () => ({ webUrl: platform.webUrl, backendUrl: platform.backendUrl });

/** Returns the names of the Updates that a workflow has accepted, in order. */
function updatesIn(events: readonly temporal.api.history.v1.IHistoryEvent[]) {
  return events.flatMap(({ workflowExecutionUpdateAcceptedEventAttributes: accepted }) =>
    accepted ? [accepted.acceptedRequest?.input?.name] : [],
  );
}

/** Runs commands as a terminal would, but stops at the first failure. */
async function paste(commands: string): Promise<string> {
  const run = promisify(execFile)('bash', ['-euo', 'pipefail', '-c', commands], {
    cwd: platform.place.stateHome,
    env: { ...process.env, INTERNAL_API_KEY: platform.internalApiKey },
    timeout: 480_000,
  });
  try {
    return (await run).stdout;
  } catch (error) {
    const { stdout, stderr } = error as { stdout?: string; stderr?: string };
    throw new Error(`The tour ended early:\n${stdout}\n${stderr}\n${platform.output}`, {
      cause: error,
    });
  }
}

async function openClawImage(): Promise<string> {
  const { cacheDir } = readSettings(process.env).process;
  const docker = connectDocker(process.env.DOCKER_HOST);
  return ensureAgentImage({ docker, version: AGENT_RUNTIME_VERSION, cacheDir, log: console.log });
}

/** The parts of a model request that this test reads. */
interface Asked {
  readonly messages: readonly { readonly role: string; readonly content?: unknown }[];
}

/** Plays an AI provider that streams a fixed answer and calls the tool for files that a message names. */
async function complete(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { messages } = JSON.parse(await text(request)) as Asked; // OpenAI's format
  const isAsked = messages.some(
    ({ content, role }) => role === 'user' && textIn(content).includes(FILE),
  );
  const found = messages.findLast(({ role }) => role === 'tool');
  if (isAsked && !found) {
    const called = { name: 'read', arguments: JSON.stringify({ path: FILE }) };
    const call = { index: 0, id: 'call_1', type: 'function', function: called };
    streamCompletion(response, [{ role: 'assistant', tool_calls: [call] }], 'tool_calls');
  } else {
    // Quotes the file as the agent read it, rather than as the test wrote it.
    const content = found ? `It says: ${textIn(found.content)}` : ANSWER;
    streamCompletion(response, [{ role: 'assistant', content }]);
  }
}

/** Returns the text of a message content that is a string or a list of parts. */
const textIn = (content: unknown): string =>
  Array.isArray(content)
    ? content.map((part: { readonly text?: string }) => part.text ?? '').join('')
    : String(content);
