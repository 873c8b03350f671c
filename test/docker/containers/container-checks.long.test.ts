// @module-tag attack
import type Docker from 'dockerode';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { containerOptions } from '../../../src/docker/containers/container-profile.js';
import type { AgentContainerSpec } from '../../../src/docker/containers/container-spec.js';
import { ensureTestImage } from '../../agent-image/ensure-test-image.js';
import { testDocker } from '../../support/docker.js';

const fixture = testDocker();
const { docker, host, installation, labels } = fixture;
let spec: AgentContainerSpec;
let running: Docker.Container | undefined;

beforeAll(async () => {
  spec = await fixture.spec({ image: await ensureTestImage(docker) });
  await host.networks.ensure(spec);
  await host.volumes.ensure(spec, 'test');
});
afterEach(async () => {
  await running?.remove({ force: true, v: true });
  running = undefined;
});
afterAll(() => fixture.close());

type Options = ReturnType<typeof containerOptions>;

/** Runs the agent's container with other options, as a person at the host could, and measures its profile. */
async function profileOf(change: (options: Options) => Partial<Options>) {
  const options = containerOptions(spec, { installation, labels });
  running = await docker.createContainer({ ...options, ...change(options) });
  await running.start();
  return (await host.checks.measure(spec)).checks.profile;
}

const onHost = (changed: Docker.HostConfig) => (options: Options) => ({
  HostConfig: { ...options.HostConfig, ...changed },
});

it('passes a container with the options of the platform', async () => {
  expect(await profileOf(() => ({}))).toMatchObject({ ok: true });
});

const GATEWAY = '18789/tcp';
const volume = (name: string, target: string): Docker.MountSettings => ({
  Type: 'volume',
  Source: name,
  Target: target,
  VolumeOptions: { NoCopy: false, Labels: labels, DriverConfig: { Name: 'local', Options: {} } },
});

it.each<[string, string, (options: Options) => Partial<Options>]>([
  ['the user root', 'User', () => ({ User: '0:0' })],
  ['an added capability', 'CapAdd', onHost({ CapAdd: ['NET_ADMIN'] })],
  ['the capabilities of Docker', 'CapDrop', onHost({ CapDrop: [] })],
  ['all privileges', 'Privileged', onHost({ Privileged: true, UsernsMode: 'host' })],
  ['new privileges', 'SecurityOpt', onHost({ SecurityOpt: [] })],
  [
    'system calls without a filter',
    'SecurityOpt',
    onHost({ SecurityOpt: ['no-new-privileges', 'seccomp=unconfined'] }),
  ],
  ['a root file system that it writes', 'ReadonlyRootfs', onHost({ ReadonlyRootfs: false })],
  ['the processes of the host', 'PidMode', onHost({ PidMode: 'host', UsernsMode: 'host' })],
  ['the memory segments of the host', 'IpcMode', onHost({ IpcMode: 'host', UsernsMode: 'host' })],
  ['the users of the host', 'UsernsMode', onHost({ UsernsMode: 'host' })],
  [
    'the host name of the host',
    'UTSMode',
    (options) => ({
      Hostname: undefined,
      HostConfig: { ...options.HostConfig, UTSMode: 'host', UsernsMode: 'host' },
    }),
  ],
  [
    'the network of the host',
    'NetworkMode',
    (options) => ({
      Hostname: undefined,
      ExposedPorts: undefined,
      HostConfig: {
        ...options.HostConfig,
        NetworkMode: 'host',
        PortBindings: {},
        UsernsMode: 'host',
      },
    }),
  ],
  [
    'a port at every address',
    'PortBindings',
    onHost({ PortBindings: { [GATEWAY]: [{ HostIp: '0.0.0.0', HostPort: '0' }] } }),
  ],
  ['a directory of the host', 'Binds', onHost({ Binds: ['/etc:/host:ro'] })],
  [
    'a second volume',
    'Mounts',
    (options) => ({
      HostConfig: {
        ...options.HostConfig,
        Mounts: [...(options.HostConfig?.Mounts ?? []), volume(`${installation}-2`, '/other')],
      },
    }),
  ],
  [
    'another volume',
    'Mounts',
    onHost({ Mounts: [volume(`${installation}-3`, '/home/node')], ReadonlyRootfs: true }),
  ],
  [
    'its volume read-only',
    'Mounts',
    (options) => ({
      HostConfig: {
        ...options.HostConfig,
        Mounts: options.HostConfig?.Mounts?.map((mount) => ({ ...mount, ReadOnly: true })) ?? [],
      },
    }),
  ],
  ['a larger /tmp', 'Tmpfs', onHost({ Tmpfs: { '/tmp': 'rw,exec,size=8g' } })],
  ['a device', 'Devices', onHost({ Devices: [device('/dev/null')], UsernsMode: 'host' })],
  ['a group', 'GroupAdd', onHost({ GroupAdd: ['0'] })],
  ['a kernel parameter', 'Sysctls', onHost({ Sysctls: { 'net.ipv4.ip_forward': '1' } })],
  ['more processes', 'PidsLimit', onHost({ PidsLimit: -1 })],
  ['more open files', 'Ulimits', onHost({ Ulimits: [] })],
  ['an earlier death by the kernel', 'OomScoreAdj', onHost({ OomScoreAdj: 1_000 })],
  ['a restart by Docker', 'RestartPolicy', onHost({ RestartPolicy: { Name: 'always' } })],
  ['another log', 'LogConfig', onHost({ LogConfig: { Type: 'none', Config: {} } })],
  ['another host name to resolve', 'ExtraHosts', onHost({ ExtraHosts: ['example.com:127.0.0.1'] })],
  ['another variable', 'Env', () => ({ Env: ['NODE_OPTIONS=--inspect=0.0.0.0'] })],
  ['another command', 'Cmd', () => ({ Cmd: ['sleep', '60'] })],
  ['another entry point', 'Entrypoint', () => ({ Entrypoint: ['/usr/bin/env'] })],
  ['another working directory', 'WorkingDir', () => ({ WorkingDir: '/tmp' })],
])('fails a container with %s in %s', async (_, name, change) => {
  const { detail, ok } = await profileOf(change);
  expect(ok).toBe(false);
  expect(detail.replace('differs in ', '').split(', ')).toContain(name);
});

function device(path: string) {
  return { PathOnHost: path, PathInContainer: '/dev/other', CgroupPermissions: 'rwm' };
}
