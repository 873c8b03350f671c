import { afterAll, beforeAll, expect, it } from 'vitest';
import { containerName } from '../../src/containers/container-spec.js';
import { gatewayHealth, gatewayReady } from '../../src/containers/gateway-probe.js';
import { ensureTestImage } from '../agent-image/ensure-test-image.js';
import { testDocker, until } from '../support/docker.js';

const fixture = testDocker();
const { containers, docker, host } = fixture;
let image: string;

beforeAll(async () => {
  image = await ensureTestImage(docker);
}, 60_000);
afterAll(() => fixture.close());

async function runningAgent(env: Record<string, string> = {}) {
  const spec = await fixture.spec({ image, env });
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
    NetworkMode: containerName(spec.agentId),
    PortBindings: { '18789/tcp': [{ HostIp: '127.0.0.1', HostPort: String(spec.port) }] },
    LogConfig: { Type: 'json-file', Config: { 'max-size': '10m', 'max-file': '3' } },
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

it('has a health check that the image can run', async () => {
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
  await tell(spec.port, { mode: 'unhealthy' });
  expect(await run()).toEqual({ code: 1 });
});

it('tells a live gateway that takes no work from a dead one', async () => {
  const { port } = await runningAgent();
  const options = { timeoutMs: 500 };
  expect(await gatewayHealth(port, options)).toMatchObject({ healthy: true, status: 200 });

  await tell(port, { mode: 'draining' });
  expect(await gatewayHealth(port, options)).toMatchObject({ healthy: true });
  expect(await gatewayReady(port, options)).toMatchObject({
    ready: false,
    status: 503,
    body: { failing: ['draining'] },
  });

  await tell(port, { mode: 'hang' });
  expect(await gatewayHealth(port, options)).toMatchObject({ healthy: false, reachable: false });
});

it('shows how a container ended and takes it up again', async () => {
  const { agentId, port } = await runningAgent();
  await tell(port, { exit: 7 });
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

it('measures what a running agent uses', async () => {
  const { agentId } = await runningAgent();
  const stats = await containers.stats(agentId);
  expect(stats.memoryBytes).toBeGreaterThan(1024 ** 2);
  expect(stats.memoryLimitBytes).toBe(3 * 1024 ** 3);
  expect(stats.processes).toBeGreaterThan(1);
  expect(stats.cpuPercent).toBeGreaterThanOrEqual(0);
});

async function tell(port: number, order: object): Promise<void> {
  const init = { method: 'POST', body: JSON.stringify(order), signal: AbortSignal.timeout(5_000) };
  const response = await fetch(`http://127.0.0.1:${port}/test`, init);
  expect(response.status).toBe(200);
}
