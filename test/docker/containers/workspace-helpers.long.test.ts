import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  ForeignContainerError,
  ImageUnavailableError,
  MemoryMissingError,
} from '../../../src/docker/containers/container-errors.js';
import {
  containerName,
  LABEL,
  spareNames,
  STATE_DIRECTORY,
} from '../../../src/docker/containers/container-spec.js';
import { DockerClient } from '../../../src/docker/containers/docker-client.js';
import type { WorkspaceSpec } from '../../../src/docker/containers/helper-container.js';
import { WorkspaceHelpers } from '../../../src/docker/containers/workspace-helpers.js';
import { ConflictError } from '../../../src/lib/errors.js';
import { runWithDeadline } from '../../../src/workspace/run-with-deadline.js';
import type { WorkspaceCall } from '../../../src/workspace/workspace-call.js';
import { ensureTestImage } from '../../agent-image/ensure-test-image.js';
import { testDocker } from '../../support/docker.js';
import { until } from '../../support/until.js';
import { runInContainer } from '../../support/run-in-container.js';
import { workspaceHelper } from '../../support/workspace-helper.js';
import { Gate } from '../../workflows/support/gate.js';

const fixture = testDocker();
const { docker, host, installation, labels } = fixture;
const all: WorkspaceHelpers[] = [];
let image: string;
let program: string;

type Parameters = ConstructorParameters<typeof WorkspaceHelpers>;

/** Returns helpers as a separate process would own them. */
function newHelpers(options: Parameters[2] = {}, volumes: Parameters[1] = host.volumes) {
  const client = new DockerClient({ dockerHost: process.env.DOCKER_HOST, installation, labels });
  const made = new WorkspaceHelpers(client, volumes, options);
  all.push(made);
  return made;
}
const helpers = newHelpers();

beforeAll(async () => {
  [image, program] = await Promise.all([ensureTestImage(docker), workspaceHelper()]);
});
afterAll(async () => {
  await Promise.all(all.map((each) => each.close()));
  await fixture.close();
});

/** Creates an agent that has a memory and has never run. */
async function newAgent(userId: string = randomUUID()): Promise<WorkspaceSpec> {
  const agentId = randomUUID();
  await host.volumes.ensure({ agentId, userId }, 'test');
  return { agentId, userId, image, volume: containerName(agentId) };
}

const never = new AbortController().signal;

async function ask(
  spec: WorkspaceSpec,
  call: WorkspaceCall,
  by = helpers,
  still = async () => {},
  runs = program,
) {
  const answer: unknown = JSON.parse(await by.call(runs, spec, call, { signal: never, still }));
  return answer;
}
const write = (content: string): WorkspaceCall => ({ what: 'write', path: 'a.txt', content });
const read: WorkspaceCall = { what: 'read', path: 'a.txt' };

const containerOf = ({ agentId }: WorkspaceSpec) => docker.getContainer(spareNames(agentId).files);
const idOf = async (spec: WorkspaceSpec) => (await containerOf(spec).inspect()).Id;

async function helpersOf(spec: WorkspaceSpec): Promise<string[]> {
  const filters = { label: [`${LABEL.files}=${spec.agentId}`] };
  return (await docker.listContainers({ all: true, filters })).map(({ Id }) => Id);
}

test('a helper has the volume and nothing else, and no network', { tags: 'attack' }, async () => {
  const spec = await newAgent();
  await ask(spec, write('one'));
  const { Config, HostConfig, Mounts, NetworkSettings } = await containerOf(spec).inspect();
  expect(Mounts.map(({ Destination, Name }) => [Destination, Name])).toEqual([
    [STATE_DIRECTORY, spec.volume],
  ]);
  expect(Object.keys(NetworkSettings.Networks)).toEqual(['none']);
  expect(HostConfig).toMatchObject({
    NetworkMode: 'none',
    ReadonlyRootfs: true,
    CapDrop: ['ALL'],
    Privileged: false,
    SecurityOpt: ['no-new-privileges'],
    PidsLimit: 64,
    AutoRemove: true,
    Memory: 256 * 1024 * 1024,
    MemorySwap: 256 * 1024 * 1024,
  });
  expect([Config.User, Config.Healthcheck]).toEqual(['1000:1000', { Test: ['NONE'] }]);
  // Listings of the agent's containers do not include the helper.
  expect(Config.Labels[LABEL.agent]).toBeUndefined();
  expect((await host.containers.list()).map(({ agentId }) => agentId)).not.toContain(spec.agentId);
  expect(await host.ownersOfContainers()).not.toContain(spec.agentId);
});

test('processes share one helper and reuse it', async () => {
  const spec = await newAgent();
  const other = newHelpers();
  const answers = await Promise.all([ask(spec, write('one')), ask(spec, write('one'), other)]);
  expect(answers).toMatchObject([{ value: { size: 3 } }, { value: { size: 3 } }]);
  const first = await idOf(spec);
  expect(await ask(spec, read)).toMatchObject({ value: { content: 'one' } });
  expect([await idOf(spec), (await helpersOf(spec)).length]).toEqual([first, 1]);
});

test('a helper that another process has created and not started yet is shared, not replaced', async () => {
  const spec = await newAgent();
  const start = new Gate();
  const isCreated = new Gate();
  const slow = ask(spec, write('one'), newHelpers(), () => {
    isCreated.open();
    return start.pass();
  });
  try {
    await isCreated.pass();
    const made = await idOf(spec);
    expect(await ask(spec, write('two'))).toMatchObject({ value: { size: 3 } });
    start.open();
    expect(await slow).toMatchObject({ value: { size: 3 } });
    expect(await helpersOf(spec)).toEqual([made]);
  } finally {
    start.open();
  }
});

test('an answer that is too large for one frame arrives whole', async () => {
  const spec = await newAgent();
  const content = '\u0001ü\n'.repeat(200_000);
  await ask(spec, write(content));
  expect(await ask(spec, read)).toMatchObject({ value: { content } });
});

test('a killed helper is replaced by another, which finds either the old or the new file', async () => {
  const spec = await newAgent();
  await ask(spec, write('0'));
  for (let round = 1; round <= 3; round += 1) {
    const before = await ask(spec, read);
    const content = String(round).repeat(900_000);
    // Before, during or after the write: the call is retried automatically or fails.
    const writing = ask(spec, write(content)).catch(() => undefined);
    await containerOf(spec).kill();
    const left = await writing;
    const { value } = (await ask(spec, read)) as { value: { content: string } };
    const isNew = value.content === content;
    expect(isNew || (left === undefined && value.content === Object(before).value.content)).toBe(
      true,
    );
  }
  const listed = await runIn(spec, `require('fs').readdirSync('.openclaw/workspace').join()`);
  expect(listed).toBe('a.txt');
});

/** Returns the value of an expression, evaluated in the state folder. */
const runIn = (spec: WorkspaceSpec, expression: string) =>
  runInContainer(
    docker,
    spareNames(spec.agentId).files,
    `process.chdir('${STATE_DIRECTORY}'); process.stdout.write(String(${expression}))`,
  );

describe('a helper that records its calls and is killed by each sync', () => {
  const noting = `
    const fs = require('fs');
    const { socket: address, volume } = JSON.parse(process.argv[1]);
    const note = (what) => fs.appendFileSync(volume + '/noted', what + ' ');
    process.on('SIGTERM', () => {
      note('end');
      process.exit();
    });
    require('net').createServer((socket) => {
      require('readline').createInterface({ input: socket }).on('line', (line) => {
        const { id, call } = JSON.parse(line);
        note(call.what);
        if (call.what === 'sync' || call.content === 'killed') process.kill(process.pid, 'SIGKILL');
        const value = fs.readFileSync(volume + '/noted', 'utf8');
        socket.write(JSON.stringify({ id, value }) + '\\n');
      });
    }).listen(address);
  `;
  const asked = (spec: WorkspaceSpec, call: WorkspaceCall, by = helpers) =>
    ask(spec, call, by, undefined, noting);

  test('replaces a killed helper by one that cleans up after its sync at once', async () => {
    const spec = await newAgent();
    await asked(spec, read);
    // The killed sync may have committed, so it is not retried.
    await expect(asked(spec, { what: 'sync' })).rejects.toThrow('ended before it answered');
    expect(await asked(spec, read)).toMatchObject({ value: 'read sync tree read ' });
  });

  test('repeats a lost call only if a second run does no more than the first', async () => {
    const spec = await newAgent();
    const append: WorkspaceCall = { what: 'append', path: 'a.txt', content: 'killed' };
    for (const call of [append, { ...write('killed'), etag: 'an etag' }, write('killed')]) {
      await asked(spec, read);
      await expect(asked(spec, call)).rejects.toThrow('ended before it answered');
    }
    const noted = 'read append read write read write write read ';
    expect(await asked(spec, read)).toMatchObject({ value: noted });
  });

  test('replaces a helper that runs another program, whichever process created it', async () => {
    const spec = await newAgent();
    await ask(spec, write('one'));
    expect(await asked(spec, read, newHelpers())).toMatchObject({ value: 'read ' });
    expect(await ask(spec, read)).toMatchObject({ value: { content: 'one' } });
    expect(await asked(spec, read)).toMatchObject({ value: 'read end read ' });
    expect(await helpersOf(spec)).toHaveLength(1);
  });

  test('receives SIGTERM before it is removed', async () => {
    const spec = await newAgent();
    const others = newHelpers();
    await asked(spec, read, others);
    await others.close();
    expect(await helpersOf(spec)).toEqual([]);
    expect(await asked(spec, read)).toMatchObject({ value: 'read end read ' });
    await host.volumes.copy(
      await fixture.spec({ ...spec, volume: `${spec.volume}-next` }),
      spec,
      'test',
    );
    expect(await asked(spec, read)).toMatchObject({ value: 'read end read end read ' });
  });
});

test('a helper ends by itself when it is idle', async () => {
  const spec = await newAgent();
  const brief = newHelpers({ idleMs: 1_000 });
  await ask(spec, write('one'), brief);
  await until(async () => (await helpersOf(spec)).length === 0);
  expect(await ask(spec, read, brief)).toMatchObject({ value: { content: 'one' } });
});

test('helpers are limited in total, and those of one owner to a quarter of the limit', async () => {
  const userId = randomUUID();
  // Helpers of other processes count as well.
  await Promise.all(all.map((each) => each.close()));
  const filters = { label: [`${LABEL.installation}=${installation}`, LABEL.files] };
  await until(async () => (await docker.listContainers({ all: true, filters })).length === 0);
  const few = newHelpers({ most: 8, idleMs: 600_000 });
  // Another owner's agent, whose helper is the least recently used.
  const agents = [await newAgent()];
  for (let made = 0; made < 3; made += 1) agents.push(await newAgent(userId));
  for (const spec of agents) await ask(spec, write('one'), few);
  const left = await Promise.all(agents.map(helpersOf));
  // The owner's least recently used helper was evicted.
  expect(left.map(({ length }) => length)).toEqual([1, 0, 1, 1]);

  // Helpers of another process are never evicted: that process may be using them.
  const more = [await newAgent(userId), await newAgent()];
  const asked = more.map((spec, at) => ask(spec, read, newHelpers({ most: at === 0 ? 8 : 3 })));
  const refused = { status: 'rejected', reason: expect.objectContaining({ status: 503 }) };
  expect(await Promise.allSettled(asked)).toEqual([refused, refused]);
});

test("calls that exceed their owner's share are answered one after another", async () => {
  const userId = randomUUID();
  const few = newHelpers({ most: 8 });
  const agents = await Promise.all(Array.from({ length: 5 }, () => newAgent(userId)));
  const answers = agents.map((spec) =>
    runWithDeadline(few.limiter, { owner: userId, signal: undefined }, () =>
      ask(spec, write('one'), few),
    ),
  );
  const written = { value: expect.objectContaining({ size: 3 }) };
  expect(await Promise.all(answers)).toEqual(answers.map(() => expect.objectContaining(written)));
});

describe('a volume that is removed or copied', () => {
  test('the removal of a volume also removes its helper', async () => {
    const spec = await newAgent();
    await ask(spec, write('one'));
    const named = { name: spec.volume, madeBy: 'test' };
    expect(await host.volumes.remove(spec.agentId, [named])).toEqual([]);
    expect(await helpersOf(spec)).toEqual([]);
    await expect(ask(spec, read)).rejects.toThrow(MemoryMissingError);
    expect(await host.volumes.list(spec.agentId)).toEqual([]);
  });

  test('a copied volume receives no further writes', async () => {
    const agent = await newAgent();
    await ask(agent, write('one'));
    const spec = await fixture.spec({ ...agent, volume: `${agent.volume}-next` });
    await host.volumes.copy(spec, agent, 'test');
    expect(await helpersOf(agent)).toEqual([]);
    const next = { ...agent, volume: `${agent.volume}-next` };
    expect(await ask(next, read)).toMatchObject({ value: { content: 'one' } });
  });

  test('a late call opens no volume', async () => {
    const spec = await newAgent();
    const late = () => Promise.reject(new ConflictError('by now', 'AGENT_NOT_RUNNING'));
    await expect(ask(spec, read, helpers, late)).rejects.toThrow('by now');
    expect(await helpersOf(spec)).toEqual([]);
  });
});

test('a memory that disappears while its helper is created is not recreated', async () => {
  const spec = await newAgent();
  const found = await host.volumes.find(spec);
  await host.volumes.remove(spec.agentId, [{ name: spec.volume, madeBy: 'test' }]);
  let checked = 0;
  const late = newHelpers(undefined, {
    find: (each) => ((checked += 1) === 1 ? Promise.resolve(found) : host.volumes.find(each)),
    removeMadeIn: (...of) => host.volumes.removeMadeIn(...of),
  });
  await expect(ask(spec, read, late)).rejects.toThrow(MemoryMissingError);
  expect(await helpersOf(spec)).toEqual([]);
  const { Volumes: volumes } = await docker.listVolumes();
  expect(volumes.filter(({ Name }) => Name === spec.volume)).toEqual([]);
});

test('a helper with a missing image is not created', async () => {
  const spec = { ...(await newAgent()), image: 'agent-platform.invalid/none:1' };
  await expect(ask(spec, read)).rejects.toThrow(ImageUnavailableError);
  expect(await helpersOf(spec)).toEqual([]);
});

test("a foreign container under a helper's name is not touched", { tags: 'attack' }, async () => {
  for (const ofAnother of [false, true]) {
    const spec = await newAgent();
    const named = { [LABEL.files]: spec.agentId, [LABEL.installation]: 'another' };
    const { id } = await docker.createContainer({
      name: spareNames(spec.agentId).files,
      Image: image,
      Labels: { ...labels, ...(ofAnother && named) },
    });
    await expect(ask(spec, read)).rejects.toThrow(ForeignContainerError);
    expect(await idOf(spec)).toBe(id);
  }
});

test('a helper that was created and never started is removed once it is old enough', async () => {
  const spec = await newAgent();
  await ask(spec, write('one'));
  const { Config, HostConfig } = await containerOf(spec).inspect();
  await host.workspaces.removeDead();
  expect(await helpersOf(spec)).toHaveLength(1);
  await containerOf(spec).remove({ force: true });
  await docker.createContainer({
    name: spareNames(spec.agentId).files,
    Image: image,
    Labels: Config.Labels,
    HostConfig,
  });
  await host.workspaces.removeDead();
  // Another process may be about to start it.
  expect(await helpersOf(spec)).toHaveLength(1);
  await host.workspaces.removeDead(0);
  expect(await helpersOf(spec)).toEqual([]);
});
