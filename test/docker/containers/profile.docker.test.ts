import { readFile } from 'node:fs/promises';
import { parseEnv } from 'node:util';
import Docker from 'dockerode';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { AgentMeter } from '../../../src/agents/metrics/agent-meter.js';
import { bridgeName, bridgePrefix } from '../../../src/docker/containers/bridge-name.js';
import { DockerRefusedError } from '../../../src/docker/containers/container-errors.js';
import { containerName } from '../../../src/docker/containers/container-spec.js';
import { DockerHost } from '../../../src/docker/containers/docker-host.js';
import { gatewayHealth, gatewayReady } from '../../../src/docker/containers/gateway-probe.js';
import { ensureTestImage } from '../../agent-image/ensure-test-image.js';
import { testDocker } from '../../support/docker.js';
import { until } from '../../support/until.js';
import { runInContainer } from '../../support/run-in-container.js';

const fixture = testDocker();
const { containers, docker, host } = fixture;
let image: string;

beforeAll(async () => {
  image = await ensureTestImage(docker);
});
afterAll(() => fixture.close());

const TOKENS = { OPENCLAW_GATEWAY_TOKEN: 'gateway token', PLATFORM_AI_TOKEN: 'ai token' };

async function runningAgent(env: Record<string, string> = {}) {
  const spec = await fixture.spec({ image, env, secrets: { ...TOKENS, SHOP_KEY: "a 'key'" } });
  await host.networks.ensure(spec);
  await host.volumes.ensure(spec, 'test');
  await containers.ensure(spec);
  await containers.start(spec.agentId);
  await until(async () => (await gatewayReady(spec.port, { timeoutMs: 500 })).ready);
  return spec;
}

it('runs an agent with every restriction of the profile', async () => {
  const spec = await runningAgent();
  const { HostConfig, Config, Mounts, NetworkSettings } = await docker
    .getContainer(containerName(spec.agentId))
    .inspect();
  expect(HostConfig).toMatchObject({
    Privileged: false,
    CapAdd: null,
    CapDrop: ['ALL'],
    SecurityOpt: ['no-new-privileges'],
    ReadonlyRootfs: true,
    Init: true,
    PidsLimit: 512,
    Memory: 3 * 1024 ** 3,
    MemorySwap: 3 * 1024 ** 3,
    CpuPeriod: 100_000,
    CpuQuota: 200_000,
    RestartPolicy: { Name: 'no' },
    CpuShares: 256,
    OomScoreAdj: 500,
    Ulimits: [
      { Name: 'nofile', Soft: 16_384, Hard: 16_384 },
      { Name: 'core', Soft: 0, Hard: 0 },
    ],
    NetworkMode: containerName(spec.agentId),
    PortBindings: { '18789/tcp': [{ HostIp: '127.0.0.1', HostPort: String(spec.port) }] },
    LogConfig: {
      Type: 'json-file',
      Config: {
        'max-size': '10m',
        'max-file': '3',
        mode: 'non-blocking',
        'max-buffer-size': '4m',
      },
    },
    ExtraHosts: ['host.docker.internal:host-gateway'],
  });
  expect(Object.keys(HostConfig.Tmpfs ?? {})).toEqual(['/tmp']);
  expect(HostConfig.Binds ?? []).toEqual([]);
  expect(Config.User).toBe('1000:1000');
  expect(Config.Healthcheck).toMatchObject({
    Interval: 30e9,
    Timeout: 5e9,
    StartPeriod: 20e9,
    Retries: 5,
  });
  expect(Config.Labels).toMatchObject({
    'agent-platform.agent': spec.agentId,
    'agent-platform.owner': spec.userId,
    'agent-platform.installation': fixture.installation,
    ...fixture.labels,
  });
  expect(Mounts).toMatchObject([
    { Type: 'volume', Name: containerName(spec.agentId), Destination: '/home/node', RW: true },
  ]);
  expect(Object.keys(NetworkSettings.Networks)).toEqual([containerName(spec.agentId)]);
});

it('creates a bridge for each agent, named after the installation, without IPv6', async () => {
  const { agentId, subnet } = await runningAgent();
  const network = await docker.getNetwork(containerName(agentId)).inspect();
  const bridge = bridgeName(fixture.installation, subnet);
  expect(network).toMatchObject({
    EnableIPv6: false,
    Options: { 'com.docker.network.bridge.name': bridge },
  });
  expect(bridge.startsWith(bridgePrefix(fixture.installation))).toBe(true);
  const addresses = 'console.log(JSON.stringify(Object.values(os.networkInterfaces()).flat()))';
  const found = await runInContainer(docker, containerName(agentId), addresses);
  expect(JSON.parse(found).map(({ family }: { family: string }) => family)).toEqual([
    'IPv4',
    'IPv4',
  ]);
});

it(
  "ranks an agent below the platform for the kernel's OOM killer, which the agent cannot change",
  { tags: 'attack' },
  async () => {
    const { agentId } = await runningAgent();
    const seen = await runInContainer(
      docker,
      containerName(agentId),
      `const fs = require('fs');
     let raised = 'raised';
     try { fs.writeFileSync('/proc/self/oom_score_adj', '-500'); } catch { raised = 'refused'; }
     const score = fs.readFileSync('/proc/1/oom_score_adj', 'utf8').trim();
     const limits = fs.readFileSync('/proc/1/limits', 'utf8');
     const limit = (name) => limits.split(name)[1].trim().split(/ +/).slice(0, 2);
     console.log(JSON.stringify([score, raised, limit('open files'), limit('core file size')]))`,
    );
    expect(JSON.parse(seen)).toEqual(['500', 'refused', ['16384', '16384'], ['0', '0']]);
  },
);

it(
  'sets a low disk weight for an agent if the kernel supports weights',
  { tags: 'attack' },
  async () => {
    const asked = vi.spyOn(Docker.prototype, 'createContainer');
    try {
      const { agentId } = await runningAgent();
      const weights = asked.mock.calls
        .filter(([options]) => options.name === containerName(agentId))
        .map(([options]) => options.HostConfig?.BlkioWeight);
      // Docker does not report a weight that it ignored, so check the request.
      expect(weights).toEqual([(await host.engine())?.weighsDisks ? 100 : undefined]);
    } finally {
      asked.mockRestore();
    }
  },
);

it(
  'maps an agent to an unprivileged host user if the engine remaps users',
  { tags: 'attack' },
  async () => {
    const { agentId } = await runningAgent();
    const container = docker.getContainer(containerName(agentId));
    const { Id: id, State: state } = await container.inspect();
    const first = (await host.engine())?.usersFrom;
    const inside = await runInContainer(
      docker,
      containerName(agentId),
      `process.stdout.write(require('fs').readFileSync('/proc/self/uid_map', 'utf8'))`,
    );
    if (first) expect(inside.trim().split(/ +/)[1]).toBe(String(first.uid));
    const outside = (name: string) =>
      readFile(`/proc/${state.Pid}/${name}`, 'utf8').catch(() => '');
    // With an engine in another machine, the process id names an unrelated process here.
    if (!(await outside('cgroup')).includes(id)) return;
    expect(await outside('status')).toContain(`\nUid:\t${1000 + (first?.uid ?? 0)}\t`);
  },
);

it(
  "passes secrets to the agent and hides them from Docker's inspection",
  { tags: 'attack' },
  async () => {
    const { agentId, secrets } = await runningAgent();
    const inspected = JSON.stringify(await docker.getContainer(containerName(agentId)).inspect());
    expect(inspected).toContain(agentId);
    for (const [name, secret] of Object.entries(secrets)) {
      expect(inspected).not.toContain(secret);
      expect(inspected).not.toContain(name);
    }
    const file = await runInContainer(
      docker,
      containerName(agentId),
      `const fs = require('fs');
     const { mode, uid } = fs.statSync('/home/node/.openclaw/.env');
     console.log([mode & 0o777, uid, fs.readFileSync('/home/node/.openclaw/.env', 'utf8')].join(' '))`,
    );
    const [mode, uid, ...text] = file.split(' ');
    expect([mode, uid]).toEqual([String(0o400), '1000']);
    expect(parseEnv(text.join(' '))).toEqual(secrets);
  },
);

it('runs agents with the requested runtime, or not at all', async () => {
  const by = (runtime: string) =>
    new DockerHost({
      dockerHost: process.env.DOCKER_HOST,
      installation: fixture.installation,
      labels: fixture.labels,
      runtime,
    });
  const spec = await fixture.spec({ image });
  await host.networks.ensure(spec);
  await host.volumes.ensure(spec, 'test');
  await expect(by('not-there').containers.ensure(spec)).rejects.toBeInstanceOf(DockerRefusedError);
  const { id } = await by('runc').containers.ensure(spec);
  expect((await docker.getContainer(id).inspect()).HostConfig.Runtime).toBe('runc');
  expect((await host.engine())?.runtimes).toContain('runc');
});

it('configures a health check that the image can run', async () => {
  const spec = await runningAgent();
  const container = docker.getContainer(containerName(spec.agentId));
  const { Config } = await container.inspect();
  const check = (Config.Healthcheck?.Test ?? []).slice(1);

  const run = async () => {
    const exec = await container.exec({ Cmd: check, AttachStdout: true });
    await exec.start({});
    return until(async () => {
      const { Running, ExitCode } = await exec.inspect();
      return !Running && { code: ExitCode };
    });
  };
  expect(await run()).toEqual({ code: 0 });
  await sendOrder(spec.port, { mode: 'unhealthy' });
  expect(await run()).toEqual({ code: 1 });
});

it('distinguishes a live gateway that accepts no work from a dead one', async () => {
  const { port } = await runningAgent();
  const options = { timeoutMs: 30_000 };
  expect(await gatewayHealth(port, options)).toMatchObject({ healthy: true, status: 200 });

  await sendOrder(port, { mode: 'draining' });
  expect(await gatewayHealth(port, options)).toMatchObject({ healthy: true });
  expect(await gatewayReady(port, options)).toMatchObject({
    ready: false,
    status: 503,
    body: { failing: ['draining'] },
  });

  await sendOrder(port, { mode: 'hang' });
  const hung = await gatewayHealth(port, { timeoutMs: 500 });
  expect(hung).toMatchObject({ healthy: false, reachable: false });
});

it('shows how a container ended and starts it again', async () => {
  const { agentId, port } = await runningAgent();
  await sendOrder(port, { exit: 7 });
  const exited = await until(async () => {
    const state = await containers.inspect(agentId);
    return state?.status === 'exited' && state;
  });
  expect(exited).toMatchObject({ exitCode: 7, oomKilled: false, runtimeVersion: '0.0.0-test' });

  await containers.start(agentId);
  const again = await containers.inspect(agentId);
  expect(again).toMatchObject({ status: 'running', exitCode: undefined, health: 'starting' });
  await until(async () => (await gatewayReady(port, { timeoutMs: 500 })).ready);
  await containers.stop(agentId, 5);
  expect(await containers.inspect(agentId)).toMatchObject({ status: 'exited', exitCode: 0 });
  await containers.start(agentId);
  await containers.kill(agentId);
  expect(await until(async () => (await containers.inspect(agentId))?.exitCode)).toBe(137);
});

it('measures the resources that a running agent uses', async () => {
  const { agentId } = await runningAgent();
  const stats = await containers.stats(agentId);
  expect(stats.memoryBytes).toBeGreaterThan(1024 ** 2);
  expect(stats.memoryLimitBytes).toBe(3 * 1024 ** 3);
  expect(stats.processes).toBeGreaterThan(1);
  expect(stats.cpuPercent).toBeGreaterThanOrEqual(0);
});

it('measures what a running agent used between two readings', async () => {
  const [{ agentId, userId }, stopped] = [await runningAgent(), await runningAgent()];
  const meter = new AgentMeter(containers);
  await meter.measure();
  await containers.stop(stopped.agentId, 5);
  const samples = await meter.measure();
  expect(samples.find((sample) => sample.agentId === stopped.agentId)).toBe(undefined);
  const sample = samples.find((each) => each.agentId === agentId);
  expect(sample).toMatchObject({ userId, memoryLimitBytes: 3 * 1024 ** 3 });
  expect(sample?.memoryBytes).toBeGreaterThan(1024 ** 2);
  expect(sample?.cpuPercent).toBeGreaterThanOrEqual(0);
  expect(sample?.cpuPercent).toBeLessThan(400);
});

async function sendOrder(port: number, order: object): Promise<void> {
  const init = { method: 'POST', body: JSON.stringify(order), signal: AbortSignal.timeout(30_000) };
  const response = await fetch(`http://127.0.0.1:${port}/test`, init);
  expect(response.status).toBe(200);
}
