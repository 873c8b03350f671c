import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { containerName, LABEL } from '../../../src/docker/containers/container-spec.js';
import type { ContainerEvent } from '../../../src/docker/containers/container-events.js';
import { DockerHost } from '../../../src/docker/containers/docker-host.js';
import { ensureTestImage } from '../../agent-image/ensure-test-image.js';
import { testDocker } from '../../support/docker.js';
import { until } from '../../support/until.js';
import { type TcpProxy, startTcpProxy } from '../../support/tcp-proxy.js';

const fixture = testDocker();
const { docker, installation } = fixture;
let image: string;
let proxy: TcpProxy;
let following: { events: ContainerEvent[]; end: () => Promise<void> } | undefined;

beforeAll(async () => {
  image = await ensureTestImage(docker);
  proxy = await startTcpProxy(process.env.DOCKER_HOST ?? 'unix:///var/run/docker.sock');
});
afterEach(async () => {
  await following?.end();
  proxy.mend();
});
afterAll(async () => {
  await proxy.close();
  await fixture.close();
});

/** Follows Docker's events through the proxy, and returns once connected. */
async function follow() {
  const host = new DockerHost({ dockerHost: proxy.host, installation });
  const ending = new AbortController();
  const events: ContainerEvent[] = [];
  const running = (async () => {
    for await (const each of host.events(ending.signal)) events.push(each);
  })();
  following = {
    events,
    async end() {
      ending.abort();
      await running;
    },
  };
  await connected(1);
}

const ofKind = <K extends ContainerEvent['kind']>(kind: K) =>
  (following?.events ?? []).filter(
    (each): each is ContainerEvent & { kind: K } => each.kind === kind,
  );
const connected = (times: number) =>
  until(() => Promise.resolve(ofKind('connected').length === times));
const deathOf = (agentId: string) =>
  until(() => Promise.resolve(ofKind('death').find((death) => death.agentId === agentId)));

/** Runs an agent's container with `code`, or with the image's own program. */
async function run(code?: string, memoryMib?: number) {
  const { agentId } = await fixture.spec({ image });
  const container = await docker.createContainer({
    name: containerName(agentId),
    Image: image,
    Labels: {
      ...fixture.labels,
      [LABEL.agent]: agentId,
      [LABEL.owner]: 'user-1',
      [LABEL.installation]: installation,
    },
    ...(code !== undefined && { Cmd: ['node', '-e', code] }),
    HostConfig: {
      Init: true,
      ...(memoryMib !== undefined && {
        Memory: memoryMib * 1024 * 1024,
        MemorySwap: memoryMib * 1024 * 1024,
      }),
    },
  });
  await container.start();
  return { agentId, container };
}

it('distinguishes how containers end', async () => {
  await follow();
  const exited = await run('setTimeout(() => process.exit(7), 100)');
  const wellEnded = await run('setTimeout(() => process.exit(0), 100)');
  const killed = await run();
  const terminated = await run();
  const stopped = await run();
  const removed = await run();
  const suicide = await run("setTimeout(() => process.kill(process.pid, 'SIGKILL'), 100)");
  await Promise.all([
    killed.container.kill(),
    terminated.container.kill({ signal: 'SIGTERM' }),
    stopped.container.stop({ t: 5 }),
    removed.container.remove({ force: true }),
  ]);
  for (const [{ agentId, container }, cause, exitCode] of [
    [exited, 'exit', 7],
    [wellEnded, 'exit', 0],
    [killed, 'kill', 137],
    [terminated, 'kill', expect.any(Number)],
    [stopped, 'stop', expect.any(Number)],
    [removed, 'kill', 137],
    [suicide, 'kill', 137],
  ] as const) {
    const death = await deathOf(agentId);
    expect(death).toEqual({
      kind: 'death',
      agentId,
      userId: 'user-1',
      containerId: container.id,
      cause,
      exitCode,
      at: expect.any(Number),
    });
    expect(Math.abs(death.at - Date.now())).toBeLessThan(60_000);
  }
});

it('reports a container that ran out of memory, unless Docker is too busy to report it in time', async () => {
  await follow();
  const causes: string[] = [];
  while (!causes.includes('oom') && causes.length < 10) {
    const { agentId } = await run('const a = []; for (;;) a.push(Buffer.alloc(1e7, 1))', 100);
    const { cause, exitCode } = await deathOf(agentId);
    expect(exitCode).toBe(137);
    causes.push(cause);
  }
  expect(causes.filter((cause) => cause !== 'kill')).toEqual(['oom']);
});

it('does not report oom if a child process ran out of memory', async () => {
  await follow();
  const eatsAll = 'const a = []; for (;;) a.push(Buffer.alloc(1e7, 1))';
  const outlives = `require('child_process').spawn(process.execPath, ['-e', '${eatsAll}'])
    .on('exit', () => setTimeout(() => process.exit(3), 1_000))`;
  const { agentId, container } = await run(outlives, 150);
  expect(await deathOf(agentId)).toMatchObject({ cause: 'exit', exitCode: 3 });
  const { State: state } = await container.inspect();
  expect(state.OOMKilled).toBe(true);
  expect(await fixture.containers.inspect(agentId)).toMatchObject({
    exitCode: 3,
    oomKilled: false,
  });
});

it('shows lack of memory as the cause of the end that it caused, and of no later end', async () => {
  const first = "const fs = require('fs'); const isFirst = !fs.existsSync('/tmp/ran');";
  const eats = 'const a = []; for (; isFirst;) a.push(Buffer.alloc(1e7, 1));';
  const rests = "fs.writeFileSync('/tmp/ran', ''); setInterval(() => 0, 1_000);";
  const { agentId, container } = await run(
    `${first} fs.writeFileSync('/tmp/ran', ''); ${eats} ${rests}`,
    100,
  );
  await container.wait();
  // Docker may record the exit before its cause.
  await until(async () => (await container.inspect()).State.OOMKilled);
  expect(await fixture.containers.inspect(agentId)).toMatchObject({ oomKilled: true });
  await container.start();
  await container.kill();
  await container.wait();
  // Newer versions of Docker keep `OOMKilled`.
  expect(await fixture.containers.inspect(agentId)).toMatchObject({
    exitCode: 137,
    oomKilled: false,
  });
});

it('does not show lack of memory of a child process as the cause of a later kill', async () => {
  const eatsAll = 'const a = []; for (;;) a.push(Buffer.alloc(1e7, 1))';
  const survives = `require('child_process').spawn(process.execPath, ['-e', '${eatsAll}'])
    .on('exit', () => { console.log('eaten'); setInterval(() => 0, 1_000); })`;
  const { agentId, container } = await run(survives, 150);
  await until(async () => String(await container.logs({ stdout: true })).includes('eaten'));
  await container.kill();
  await container.wait();
  expect((await container.inspect()).State).toMatchObject({ OOMKilled: true, ExitCode: 137 });
  expect(await fixture.containers.inspect(agentId)).toMatchObject({
    exitCode: 137,
    oomKilled: false,
  });
});

it('ignores containers of another name, installation or owner', async () => {
  await follow();
  const foreign = `agent of ${installation}`;
  const labels = { [LABEL.agent]: foreign, [LABEL.owner]: 'user-1' };
  const more = [
    { name: `other-${installation}`, labels: { ...labels, [LABEL.installation]: installation } },
    { name: undefined, labels: { ...labels, [LABEL.installation]: 'another' } },
    { name: undefined, labels: {} },
  ];
  for (const { name, labels } of more) {
    const container = await docker.createContainer({
      ...(name !== undefined && { name }),
      Image: image,
      Labels: { ...fixture.labels, ...labels },
      Cmd: ['node', '-e', ''],
    });
    await container.start();
    await container.wait();
  }
  const ours = await run('');
  await deathOf(ours.agentId);
  expect(ofKind('death').map(({ agentId }) => agentId)).not.toContain(foreign);
});

it('continues after a lost connection without losing or repeating an event', async () => {
  await follow();
  const before = await run();
  const concurrent = [await run(), await run(), await run()];
  const afterwards = await run();
  await before.container.kill();
  await deathOf(before.agentId);
  for (let cut = 1; cut <= 3; cut++) {
    proxy.cut();
    await until(() => Promise.resolve(ofKind('lost').length === cut));
    await concurrent[cut - 1]?.container.kill();
    proxy.mend();
    await connected(cut + 1);
  }
  await afterwards.container.kill();
  const all = [before, ...concurrent, afterwards].map(({ agentId }) => agentId);
  for (const agentId of all) await deathOf(agentId);
  const reported = ofKind('death').map(({ agentId }) => agentId);
  expect(reported.filter((agentId) => all.includes(agentId))).toEqual(all);
  expect(ofKind('connected').map(({ lostAt }) => lostAt)).toEqual([
    undefined,
    ...[1, 2, 3].map(() => expect.any(Number)),
  ]);
});

it('detects a silent, dead connection', async () => {
  await follow();
  const { agentId, container } = await run();
  proxy.silence();
  await until(() => Promise.resolve(ofKind('lost').length === 1));
  proxy.mend();
  await connected(2);
  // Killed only now: after many other events, Docker forgets an event as old as the silence.
  await container.kill();
  expect(await deathOf(agentId)).toMatchObject({ cause: 'kill' });
});

it('ends when aborted, even while Docker is unavailable', async () => {
  await follow();
  proxy.cut();
  await until(() => Promise.resolve(ofKind('lost').length === 1));
  await following?.end();
  expect(ofKind('connected')).toHaveLength(1);
});
