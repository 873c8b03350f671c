import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { SKILL_LIMIT_REACHED } from '../../src/agents/model/agent-skills.js';
import { containerName } from '../../src/docker/containers/container-spec.js';
import { publishShippedSkills, SHIPPED_SKILLS } from '../../src/skills/shipped-skills.js';
import { textsOfHistories } from '../support/histories.js';
import { testPlatform, type TestPlatform, type TestUser } from '../support/platform.js';
import { until } from '../support/until.js';
import { runInContainer } from '../support/run-in-container.js';

const STATE = '/home/node/.openclaw';
/** A text that must be nowhere but in rows and in the agent. */
const SECRET = 'instructions of the secret project';

let platform: TestPlatform;
let ada: TestUser;
let bob: TestUser;
let agentId: string;

beforeAll(async () => {
  platform = await testPlatform();
  await publishShippedSkills(platform.db, platform.log);
  [ada, bob] = await Promise.all([platform.signUp('network'), platform.signUp('network')]);
  agentId = await platform.runningAgent(ada);
});
afterAll(async () => {
  console.log(
    platform.logged
      .filter((l) => JSON.parse(l).level >= 50)
      .slice(0, 2)
      .join('\n'),
  );
  await platform?.dockerHost.workspaces.close();
  await platform?.close();
});

const act = (name: string, body: object, user = ada) =>
  platform.web(user, 'POST', `/api/skills/${name}?wait=60`, { body: { agentId, ...body } });
const publish = (body: object, user = ada) => platform.web(user, 'POST', '/api/skills', { body });
const list = (query: string, user = ada) => platform.web(user, 'GET', `/api/skills?${query}`);
const inAgent = (script: string) => runInContainer(platform.docker, containerName(agentId), script);

/** Returns the files of the folder of skills, and the entries of the configuration, as visible to the agent. */
async function skillsInAgent(): Promise<{ files: Record<string, string>; entries: object }> {
  const seen = await inAgent(`
    const fs = require('fs');
    const files = {};
    for (const each of fs.existsSync('${STATE}/skills') ? fs.readdirSync('${STATE}/skills', {recursive: true}) : []) {
      const path = '${STATE}/skills/' + each;
      if (fs.statSync(path).isFile()) files[each] = fs.readFileSync(path, 'utf8');
      else files[each] = '';
    }
    const { skills } = JSON.parse(fs.readFileSync('${STATE}/openclaw.json', 'utf8'));
    process.stdout.write(JSON.stringify({ files, entries: skills?.entries ?? {} }));
  `);
  return JSON.parse(seen);
}

test('a shipped skill is listed, installed, used and removed', async () => {
  const listed = await list(`agentId=${agentId}`);
  expect(listed.body).toMatchObject({ count: SHIPPED_SKILLS.length, used: 0, limit: 100 });
  const [first] = listed.body.skills;
  expect(first).toMatchObject({
    author: 'Operator',
    version: 1,
    visibility: 'public',
    installs: 0,
  });
  expect(first).toMatchObject({ installed: false, installedVersion: null, enabled: false });

  const early = await act('decision-log', { input: 'hello' });
  expect([early.status, early.body.code]).toEqual([409, 'SKILL_NOT_INSTALLED']);
  const installed = await act('decision-log', { action: 'install' });
  expect([installed.status, installed.body]).toMatchObject([202, { status: 'succeeded' }]);
  const { entries, files } = await skillsInAgent();
  expect(entries).toEqual({ 'decision-log': { enabled: true } });
  expect(Object.keys(files).sort()).toEqual(['decision-log', 'decision-log/SKILL.md']);
  expect(files['decision-log/SKILL.md']).toMatch(/^---\nname: "decision-log"\ndescription: "/);

  const used = await act('decision-log', { input: 'hello' });
  expect([used.status, used.body]).toMatchObject([
    200,
    { message: { content: 'said: $decision-log hello' } },
  ]);
  const shown = await list(`name=decision-log&agentId=${agentId}`);
  expect(shown.body.skill).toMatchObject({
    installs: 1,
    uses: 1,
    installed: true,
    installedVersion: 1,
    enabled: true,
  });
  expect(shown.body.skill.content).toContain('# Decision log');

  const removed = await act('decision-log', { action: 'remove' });
  expect([removed.status, removed.body]).toMatchObject([202, { status: 'succeeded' }]);
  expect(await skillsInAgent()).toEqual({ entries: {}, files: {} });
  const again = await act('decision-log', { action: 'remove' });
  expect([again.status, again.body.code]).toEqual([409, 'SKILL_NOT_INSTALLED']);
});

test('an installed skill changes only by a new install, and stays after its withdrawal', async () => {
  const name = 'adas-notes';
  const text = (version: number) => `# Notes ${version}\n${SECRET}`;
  await publish({ name, description: 'Notes', content: text(1), visibility: 'public' });
  await act(name, { action: 'install' });
  const next = await publish({ name, content: text(2), tags: ['a'] });
  expect(next.body.skill).toMatchObject({ version: 2, description: 'Notes', visibility: 'public' });
  const file = async () => (await skillsInAgent()).files[`${name}/SKILL.md`];
  expect(await file()).toContain('# Notes 1');
  expect((await list(`name=${name}&agentId=${agentId}`)).body.skill).toMatchObject({
    version: 2,
    installedVersion: 1,
  });
  await act(name, { action: 'install' });
  expect(await file()).toContain('# Notes 2');
  await publish({ name, visibility: 'private' });
  expect((await list(`name=${name}`, bob)).status).toBe(404);
  expect((await act(name, { input: 'x' })).status).toBe(200);
});

test('a reset and a restored memory have the skills of the rows, and no other', async () => {
  const files = async () =>
    Object.keys((await skillsInAgent()).files).filter((each) => each.endsWith('.md'));
  await act('daily-brief', { action: 'install' });
  expect((await files()).sort()).toEqual(['adas-notes/SKILL.md', 'daily-brief/SKILL.md']);
  await platform.backend(ada, 'POST', `/api/agents/${agentId}/reset-memory?wait=60`);
  expect((await files()).sort()).toEqual(['adas-notes/SKILL.md', 'daily-brief/SKILL.md']);
  await act('daily-brief', { action: 'remove' });
  const { body } = await platform.backend(ada, 'GET', `/api/agents/${agentId}/archives`);
  const restored = await platform.backend(ada, 'POST', `/api/agents/${agentId}/restore?wait=60`, {
    body: { archiveId: body.archives[0].id },
  });
  expect(restored.body).toMatchObject({ status: 'succeeded' });
  expect(await files()).toEqual(['adas-notes/SKILL.md']);
  await inAgent(`require('fs').rmSync('${STATE}/skills', { recursive: true })`);
  await platform.backend(ada, 'POST', `/api/agents/${agentId}/restart?wait=60`);
  expect(await files()).toEqual(['adas-notes/SKILL.md']);
});

test('a skill with which the agent does not start leaves neither file nor entry', async () => {
  const name = 'exit-at-start';
  await publish({ name, description: 'Ends the agent', content: '# End' });
  const before = await skillsInAgent();
  const failed = await act(name, { action: 'install' });
  expect([failed.status, failed.body]).toMatchObject([202, { status: 'failed' }]);
  expect(failed.body.error).toContain('rolled back');
  expect(await skillsInAgent()).toEqual(before);
  expect((await list(`name=${name}&agentId=${agentId}`)).body.skill).toMatchObject({
    installed: false,
    installs: 0,
  });
  expect((await act(name, { input: 'x' })).status).toBe(409);
});

test(
  'links and files of the agent in place of a skill are replaced and lead nowhere',
  { tags: 'attack' },
  async () => {
    await inAgent(`
    const fs = require('fs');
    fs.mkdirSync('${STATE}/workspace/kept', { recursive: true });
    fs.writeFileSync('${STATE}/workspace/kept/SKILL.md', 'kept');
    fs.rmSync('${STATE}/skills', { recursive: true });
    fs.symlinkSync('${STATE}/workspace', '${STATE}/skills');
    fs.writeFileSync('${STATE}/platform-skills.json', JSON.stringify({ skills: ['kept', 'adas-notes'] }));
  `);
    await platform.backend(ada, 'POST', `/api/agents/${agentId}/restart?wait=60`);
    expect(Object.keys((await skillsInAgent()).files).sort()).toEqual([
      'adas-notes',
      'adas-notes/SKILL.md',
    ]);
    expect(
      await inAgent(
        `process.stdout.write(require('fs').readFileSync('${STATE}/workspace/kept/SKILL.md', 'utf8'))`,
      ),
    ).toBe('kept');
  },
);

test('a new configuration keeps the entries of installed skills, and a stopped agent gets them at its start', async () => {
  const changed = await platform.web(ada, 'PUT', `/api/agents/${agentId}`, {
    body: { config: { note: 'x' } },
  });
  expect(changed.status).toBe(200);
  const configured = async () => {
    const { body } = await platform.backend(ada, 'GET', `/api/agents/${agentId}/operations`);
    return body.operations.every(({ finishedAt }: { finishedAt: unknown }) => finishedAt !== null);
  };
  await until(configured);
  expect((await skillsInAgent()).entries).toEqual({ 'adas-notes': { enabled: true } });
  await platform.backend(ada, 'POST', `/api/agents/${agentId}/stop?wait=60`);
  expect((await act('meeting-notes', { action: 'install' })).body.status).toBe('succeeded');
  expect((await act('adas-notes', { action: 'remove' })).body.status).toBe('succeeded');
  await platform.backend(ada, 'POST', `/api/agents/${agentId}/start?wait=60`);
  const { entries, files } = await skillsInAgent();
  expect(entries).toEqual({ 'meeting-notes': { enabled: true } });
  expect(Object.keys(files).sort()).toEqual(['meeting-notes', 'meeting-notes/SKILL.md']);
});

test('texts of skills are in no history, log or operation', { tags: 'attack' }, async () => {
  const histories = await textsOfHistories(platform.temporal.client);
  const operations = await platform.db
    .asPlatform()
    .query('SELECT to_jsonb(o) FROM operations o WHERE agent_id = $agentId', { agentId });
  for (const text of [JSON.stringify(operations), platform.logged.join('\n'), ...histories.texts]) {
    expect(text).not.toContain(SECRET);
  }
});

test('a repeated request with the same key installs and uses once', async () => {
  const headers = { 'idempotency-key': randomUUID() };
  const use = () =>
    platform.web(ada, 'POST', '/api/skills/meeting-notes', {
      headers,
      body: { agentId, input: 'once' },
    });
  const [first, second] = [await use(), await use()];
  expect(second.body).toEqual(first.body);
  expect((await list('name=meeting-notes')).body.skill).toMatchObject({ uses: 1 });
});

test(
  'exactly one of fifty installs gets the last place of the plan',
  { tags: 'attack' },
  async () => {
    const cleo = await platform.signUp('label');
    const own = await platform.runningAgent(cleo);
    const names = Array.from({ length: 10 }, (_, each) => `place-${each}`);
    for (const name of names) {
      const made = await publish({ name, description: 'x', content: '# x' }, cleo);
      expect(made.status).toBe(201);
    }
    const install = async (name: string) => {
      for (;;) {
        const path = `/api/agents/${own}/skills/${name}?wait=60`;
        const answer = await platform.backend(cleo, 'POST', path);
        // The workflow engine did not accept the request in time.
        if (answer.status !== 503) return { ...answer, name };
      }
    };
    for (const name of names.slice(0, 2)) {
      expect((await install(name)).body.status).toBe('succeeded');
    }
    const answers = await Promise.all(
      Array.from({ length: 50 }, (_, each) => install(names[2 + (each % 8)] ?? '')),
    );
    const done = answers.filter(({ body }) => body.status === 'succeeded');
    // Requests for the same skill join the operation that installs it, or install it once more.
    expect(new Set(done.map(({ name }) => name)).size).toBe(1);
    // Requests that were checked before it began fail when they run.
    const refused = answers
      .filter((each) => !done.includes(each))
      .map(({ body }) => body.code ?? body.error);
    const reasons = ['OPERATION_IN_FLIGHT', 'SKILL_LIMIT_REACHED', SKILL_LIMIT_REACHED];
    expect(refused.filter((reason) => !reasons.includes(reason))).toEqual([]);
    expect(await platform.db.asUser(cleo.id).query('SELECT name FROM agent_skills')).toHaveLength(
      3,
    );
    const last = await install('daily-brief');
    expect([last.status, last.body]).toMatchObject([
      429,
      { code: 'SKILL_LIMIT_REACHED', current: 3, limit: 3 },
    ]);
    const shown = await list(`agentId=${own}&mine=true`, cleo);
    expect([shown.body.used, shown.body.limit]).toEqual([3, 3]);
  },
);

test("another user's agent and private skill are both missing", { tags: 'attack' }, async () => {
  const name = 'private-of-ada';
  await publish({ name, description: SECRET, content: SECRET });
  const bobs = await platform.runningAgent(bob);
  const act = (body: object) =>
    platform.web(bob, 'POST', `/api/skills/${name}?wait=60`, { body: { agentId: bobs, ...body } });
  for (const action of ['install', 'remove', 'use']) {
    const answer = await act({ action });
    expect([action, answer.status, answer.body.error]).toEqual([action, 404, 'Skill not found']);
    const other = await act({ action, agentId });
    expect([action, other.status, other.body.error]).toEqual([action, 404, 'Agent not found']);
  }
  expect((await list(`agentId=${agentId}`, bob)).body.error).toBe('Agent not found');
});
