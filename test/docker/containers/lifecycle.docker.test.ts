import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer as createHttpServer } from 'node:http';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';
import {
  type AgentContainerSpec,
  containerName,
} from '../../../src/docker/containers/container-spec.js';
import {
  ContainerMissingError,
  DockerUnavailableError,
  ForeignContainerError,
  ImageUnavailableError,
  PortTakenError,
  SubnetTakenError,
} from '../../../src/docker/containers/container-errors.js';
import { DockerHost } from '../../../src/docker/containers/docker-host.js';
import { gatewayReady } from '../../../src/docker/containers/gateway-probe.js';
import { ensureTestImage } from '../../agent-image/ensure-test-image.js';
import { testDocker } from '../../support/docker.js';
import { until } from '../../support/until.js';
import { canMakeNetworks } from '../../support/far-addresses.js';

const fixture = testDocker();
const { containers, docker, host } = fixture;
let image: string;

beforeAll(async () => {
  image = await ensureTestImage(docker);
});
afterAll(() => fixture.close());

const ip = (...args: string[]) => promisify(execFile)('ip', args);

async function ensure(spec: AgentContainerSpec) {
  await host.networks.ensure(spec);
  await host.volumes.ensure(spec, 'test');
  return containers.ensure(spec);
}

it('adopts existing resources when called again', async () => {
  const spec = await fixture.spec({ image });
  const first = await ensure(spec);
  expect(first.created).toBe(true);
  expect(await ensure(spec)).toEqual({ id: first.id, created: false, staleSkills: [] });
  await containers.start(spec.agentId);
  expect(await ensure(spec)).toEqual({ id: first.id, created: false, staleSkills: [] });
  await containers.start(spec.agentId);
  expect(await containers.inspect(spec.agentId)).toMatchObject({ id: first.id, status: 'running' });
});

it('creates one container, network and volume for concurrent calls', async () => {
  const spec = await fixture.spec({ image });
  const five = [1, 2, 3, 4, 5];
  await Promise.all(five.map(() => host.networks.ensure(spec)));
  await Promise.all(five.map(() => host.volumes.ensure(spec, 'test')));
  const made = await Promise.all(five.map(() => containers.ensure(spec)));
  expect(new Set(made.map(({ id }) => id)).size).toBe(1);
  expect(made.filter(({ created }) => created)).toHaveLength(1);
  const name = containerName(spec.agentId);
  const networks = await docker.listNetworks({ filters: JSON.stringify({ name: [name] }) });
  expect(networks).toHaveLength(1);
});

it('replaces a container created from another specification and keeps its state', async () => {
  const spec = await fixture.spec({ image, files: { 'notes/kept.txt': 'kept' } });
  const first = await ensure(spec);
  await containers.start(spec.agentId);
  const second = await ensure({ ...spec, env: { ANSWER_DELAY_MS: '1' }, files: {} });
  expect(second).toMatchObject({ created: true });
  expect(second.id).not.toBe(first.id);
  await containers.start(spec.agentId);
  expect(await execute(spec.agentId, "readFileSync('/home/node/notes/kept.txt','utf8')")).toBe(
    'kept',
  );
});

it('keeps a container when its secrets change, and writes the new secrets at its next start', async () => {
  const spec = await fixture.spec({ image, secrets: { KEY: 'first' } });
  const { id } = await ensure(spec);
  await containers.start(spec.agentId);
  await containers.stop(spec.agentId, 0);
  expect(await ensure({ ...spec, secrets: { KEY: 'second' } })).toEqual({
    id,
    created: false,
    staleSkills: [],
  });
  await containers.start(spec.agentId);
  const file = '/home/node/.openclaw/.env';
  expect(await execute(spec.agentId, `readFileSync('${file}','utf8')`)).toContain("KEY='second'");
});

it('starts an existing container after its network was recreated', async () => {
  const spec = await fixture.spec({ image });
  await ensure(spec);
  await containers.start(spec.agentId);
  await containers.stop(spec.agentId, 1);
  await host.networks.remove(spec.agentId);
  await ensure(spec);
  await containers.start(spec.agentId);
  expect(await containers.inspect(spec.agentId)).toMatchObject({ status: 'running' });
});

it("writes files that only the runtime's user can read, into folders that user can write to", async () => {
  const spec = await fixture.spec({ image, files: { 'a/b/secret.json': '{"k":"ü"}' } });
  await ensure(spec);
  await containers.start(spec.agentId);
  const file = '/home/node/a/b/secret.json';
  expect(await execute(spec.agentId, `readFileSync('${file}','utf8')`)).toBe('{"k":"ü"}');
  expect(await execute(spec.agentId, `statSync('${file}').mode&0o777`)).toBe(String(0o600));
  expect(await execute(spec.agentId, `writeFileSync('/home/node/a/b/new','x')`)).toBe('undefined');
});

it.each(['../out', '/etc/passwd', 'a/../../out'])('writes no file to %s', async (name) => {
  await expect(ensure(await fixture.spec({ image, files: { [name]: '' } }))).rejects.toThrow(
    RangeError,
  );
});

it('refuses and keeps a foreign container, network and volume', async () => {
  const spec = await fixture.spec({ image });
  const name = containerName(spec.agentId);
  const Labels = fixture.labels;
  const network = await docker.createNetwork({ Name: name, Labels });
  await docker.createVolume({ Name: name, Labels });
  const container = await docker.createContainer({ name, Image: image, Labels });

  for (const refused of [
    () => host.networks.ensure(spec),
    () => host.volumes.ensure(spec, 'test'),
    () => containers.ensure(spec),
    () => containers.start(spec.agentId),
    () => containers.stop(spec.agentId, 1),
    () => containers.inspect(spec.agentId),
    () => containers.remove(spec.agentId),
    () => host.networks.remove(spec.agentId),
    () => host.volumes.remove(spec.agentId, []),
  ]) {
    await expect(refused()).rejects.toBeInstanceOf(ForeignContainerError);
  }
  expect(await container.inspect()).toMatchObject({ State: { Status: 'created' } });
  expect(await network.inspect()).toMatchObject({ Labels });
  expect(await docker.getVolume(name).inspect()).toMatchObject({ Labels });
});

it("refuses another installation's container", async () => {
  const spec = await fixture.spec({ image });
  await ensure(spec);
  const dockerHost = process.env.DOCKER_HOST;
  const other = new DockerHost({ dockerHost, installation: 'another' });
  await expect(other.containers.remove(spec.agentId)).rejects.toBeInstanceOf(ForeignContainerError);
  expect(await other.containers.list()).toEqual([]);
  expect((await containers.list()).map(({ agentId }) => agentId)).toContain(spec.agentId);
});

it('reports a port used by a listener or by another agent, and starts on the next port', async () => {
  const first = await fixture.spec({ image });
  const listener = createServer().listen(first.port, '127.0.0.1');
  await once(listener, 'listening');
  await ensure(first);
  await expect(containers.start(first.agentId)).rejects.toBeInstanceOf(PortTakenError);
  listener.close();
  await once(listener, 'close');
  await containers.start(first.agentId);

  const second = await fixture.spec({ image, port: first.port });
  await ensure(second);
  await expect(containers.start(second.agentId)).rejects.toBeInstanceOf(PortTakenError);
  const { port } = await fixture.spec({ image });
  await ensure({ ...second, port });
  await containers.start(second.agentId);
  expect(await containers.inspect(second.agentId)).toMatchObject({ status: 'running', port });
});

it('reports a subnet that overlaps one in use, and uses the next subnet', async () => {
  const first = await fixture.spec({ image });
  await host.networks.ensure(first);
  const second = await fixture.spec({ image, subnet: first.subnet });
  await expect(host.networks.ensure(second)).rejects.toBeInstanceOf(SubnetTakenError);
  await ensure(await fixture.spec({ image, agentId: second.agentId }));
});

it.runIf(canMakeNetworks)(
  'reports a subnet that is routed to another device, and uses the next subnet',
  async () => {
    const first = await fixture.spec({ image });
    // A killed engine leaves such a device behind; a VPN may own one.
    const device = `left${randomUUID().slice(0, 8)}`;
    await ip('link', 'add', device, 'type', 'bridge');
    try {
      await ip('link', 'set', device, 'up');
      await ip('route', 'add', first.subnet, 'dev', device);
      await expect(host.networks.ensure(first)).rejects.toBeInstanceOf(SubnetTakenError);
      expect(await host.networks.takenSubnets(first.agentId)).toContain(first.subnet);
      await ensure(await fixture.spec({ image, agentId: first.agentId }));
    } finally {
      await ip('link', 'delete', device);
    }
  },
);

it('reports an image that is unavailable', async () => {
  const missing = '127.0.0.1:9/none/such:1';
  await expect(host.images.ensure(missing)).rejects.toBeInstanceOf(ImageUnavailableError);
  const spec = await fixture.spec({ image: missing });
  await expect(ensure(spec)).rejects.toBeInstanceOf(ImageUnavailableError);
  expect(await host.images.ensure(image)).toMatchObject({ version: '0.0.0-test' });
});

it('removes all resources of an agent, however often it is called', async () => {
  const spec = await fixture.spec({ image });
  const name = containerName(spec.agentId);
  await ensure(spec);
  await containers.start(spec.agentId);
  for (let time = 1; time <= 2; time++) {
    await containers.remove(spec.agentId);
    await host.networks.remove(spec.agentId);
    await host.volumes.remove(spec.agentId, await host.volumes.list(spec.agentId));
    await containers.stop(spec.agentId, 1);
    await containers.kill(spec.agentId);
  }
  const filters = JSON.stringify({ name: [name] });
  expect(await containers.inspect(spec.agentId)).toBeUndefined();
  expect(await docker.listNetworks({ filters })).toEqual([]);
  expect((await docker.listVolumes({ filters })).Volumes ?? []).toEqual([]);
  await expect(containers.start(spec.agentId)).rejects.toBeInstanceOf(ContainerMissingError);
});

it('reports within its timeout that Docker is missing or does not answer', async () => {
  const silent = createServer();
  const socket = path.join(tmpdir(), `silent-${randomUUID()}.sock`);
  silent.listen(socket);
  await once(silent, 'listening');
  for (const dockerHost of [`unix://${socket}`, `unix://${socket}.none`, 'tcp://127.0.0.1:9']) {
    const unreachable = new DockerHost({ dockerHost, timeoutMs: 300 });
    await expect(unreachable.containers.inspect('a')).rejects.toBeInstanceOf(
      DockerUnavailableError,
    );
    expect(await unreachable.available()).toBe(false);
  }
  silent.close();
  expect(await host.available()).toBe(true);
});

it('isolates agents from each other and from listeners on loopback', async () => {
  const specs = await Promise.all([fixture.spec({ image }), fixture.spec({ image })]);
  for (const spec of specs) {
    await ensure(spec);
    await containers.start(spec.agentId);
    await until(async () => (await gatewayReady(spec.port, { timeoutMs: 500 })).ready);
  }
  const [mine, other] = specs;
  const reaches = async (url: string) => {
    const response = await fetch(`http://127.0.0.1:${mine.port}/test/fetch`, {
      method: 'POST',
      body: JSON.stringify({ url }),
      signal: AbortSignal.timeout(10_000),
    });
    const { reached } = (await response.json()) as { reached: boolean };
    return reached;
  };
  const info = await docker.getContainer(containerName(other.agentId)).inspect();
  const network = info.NetworkSettings.Networks[containerName(other.agentId)];
  expect(await reaches('http://127.0.0.1:18789/healthz')).toBe(true);
  expect(await reaches(`http://${network?.IPAddress}:18789/healthz`)).toBe(false);
  expect(await reaches(`http://${network?.Gateway}:${other.port}/healthz`)).toBe(false);
  expect(await reaches(`http://host.docker.internal:${other.port}/healthz`)).toBe(false);

  // Agents reach host listeners on the bridge's address, and none on loopback.
  for (const [address, expected] of [
    [await host.bridgeAddress(), true],
    ['127.0.0.1', false],
  ] as const) {
    const listener = createHttpServer((_, response) => response.end()).listen(0, address);
    await once(listener, 'listening');
    const { port } = listener.address() as AddressInfo;
    expect(await reaches(`http://host.docker.internal:${port}/`)).toBe(expected);
    listener.close();
  }
});

/** Evaluates an `fs` expression in the agent's container, as the agent's user. */
async function execute(agentId: string, expression: string): Promise<string> {
  const code = `const fs=require('fs');const {readFileSync,statSync,writeFileSync}=fs;process.stdout.write(String(${expression}))`;
  const exec = await docker
    .getContainer(containerName(agentId))
    .exec({ Cmd: ['node', '-e', code], AttachStdout: true, AttachStderr: true, Tty: true });
  const stream = await exec.start({ Tty: true });
  let output = '';
  for await (const chunk of stream) output += chunk.toString();
  return output;
}
