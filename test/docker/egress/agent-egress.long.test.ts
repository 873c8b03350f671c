import { execFile } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type AddressInfo, type Server } from 'node:net';
import { networkInterfaces } from 'node:os';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { addressRange } from '../../../src/docker/containers/address-range.js';
import {
  containerName,
  type AgentContainerSpec,
} from '../../../src/docker/containers/container-spec.js';
import { DockerClient } from '../../../src/docker/containers/docker-client.js';
import { AgentEgress, type EgressOptions } from '../../../src/docker/egress/agent-egress.js';
import { egressChain } from '../../../src/docker/egress/egress-rules.js';
import { requireHelperImage } from '../../../src/docker/egress/helper-image.js';
import { LOCAL_HELPER_IMAGE } from '../../../src/docker/egress/helper-image-name.js';
import { ensureEgressImage } from '../../../dev/egress-image/ensure-egress-image.js';
import { ensureTestImage } from '../../agent-image/ensure-test-image.js';
import { testDocker, type TestDocker } from '../../support/docker.js';
import { canMakeNetworks, farMachine, type FarMachine } from '../../support/far-addresses.js';
import { runInContainer } from '../../support/run-in-container.js';

const run = promisify(execFile);

/** Addresses that this machine does not use; the public one plays the internet. */
const PRIVATE = `10.99.${randomInt(256)}.${randomInt(1, 255)}`;
const LINK_LOCAL = `169.254.${randomInt(1, 255)}.${randomInt(1, 255)}`;
const CARRIER_GRADE = `100.127.${randomInt(256)}.${randomInt(1, 255)}`;
const PUBLIC = `25.${randomInt(256)}.${randomInt(256)}.${randomInt(1, 255)}`;

const fixture = testDocker();
const others = testDocker();
/** The pool that contains the networks of test agents. */
const subnetPool = '10.231.0.0/16';

let ai: Server;
let service: Server;
let far: FarMachine;
let spec: AgentContainerSpec;
/** Id of the helper image. */
let image: string;

const WELL = { reached: [], reachesAi: true, hasIpv6: false };

/** Formats targets as `address:port`. */
const at = (targets: readonly (readonly [string, number])[]) =>
  targets.map((target) => target.join(':'));

const portOf = (server: Server) => (server.address() as AddressInfo).port;

async function listener(): Promise<Server> {
  const server = createServer((socket) => socket.on('error', () => undefined).destroy());
  server.listen(0, '0.0.0.0');
  await once(server, 'listening');
  return server;
}

function egressOf(
  { installation, labels }: TestDocker,
  options: Partial<EgressOptions> = {},
): AgentEgress {
  const client = new DockerClient({ dockerHost: process.env.DOCKER_HOST, installation, labels });
  return new AgentEgress(client, { image, subnetPool, aiPort: portOf(ai), allow: [], ...options });
}

async function runningAgent({ docker, containers, host, spec: newSpec }: TestDocker) {
  const made = await newSpec({ image: await ensureTestImage(docker) });
  await host.networks.ensure(made);
  await host.volumes.ensure(made, 'test');
  await containers.ensure(made);
  await containers.start(made.agentId);
  return made;
}

/** Returns the targets that an agent reaches from its container, as its own user. */
async function reachedBy(
  { agentId }: AgentContainerSpec,
  targets: readonly string[],
): Promise<string[]> {
  const script = `
    const attempt = (target) => new Promise((resolve) => {
      const [host, port] = target.split(':');
      const socket = require('net').connect({ host, port, timeout: 1500 });
      const end = (reached) => { socket.destroy(); resolve(reached); };
      socket.on('timeout', () => end(false));
      socket.on('connect', () => end(true));
      socket.on('error', ({ code }) => end(code === 'ECONNREFUSED' || code === 'ECONNRESET'));
    });
    Promise.all(${JSON.stringify(targets)}.map(attempt)).then((all) => console.log(JSON.stringify(all)));`;
  const answer = await runInContainer(fixture.docker, containerName(agentId), script);
  const reached = JSON.parse(answer) as boolean[];
  return targets.filter((_, index) => reached[index]);
}

/** Returns every address of this machine but loopback: its interfaces, Docker's bridge, the agent's gateway. */
function ownAddresses(): string[] {
  const wires = Object.entries(networkInterfaces())
    .filter(([name]) => /^(eth|en|docker0)/.test(name))
    .flatMap(([, addresses]) => addresses ?? [])
    .filter(({ family }) => family === 'IPv4')
    .map(({ address }) => address);
  const first = addressRange(spec.subnet).first + 1;
  const gateway = [24, 16, 8, 0].map((bits) => (first >>> bits) & 255).join('.');
  return [...new Set([...wires, gateway, 'host.docker.internal'])];
}

const rulesOf = async ({ installation }: TestDocker) => {
  const chain = egressChain(installation);
  const lists = await Promise.all(
    ['iptables', 'ip6tables'].map((each) => run(each, ['-t', 'mangle', '-S'])),
  );
  return lists.flatMap(({ stdout }) => stdout.split('\n')).filter((line) => line.includes(chain));
};

describe.runIf(canMakeNetworks)("egress of an agent's network", () => {
  beforeAll(async () => {
    [ai, service] = [await listener(), await listener()];
    image = await ensureEgressImage(fixture.docker, LOCAL_HELPER_IMAGE);
    far = await farMachine([PRIVATE, LINK_LOCAL, CARRIER_GRADE, PUBLIC]);
    spec = await runningAgent(fixture);
  });
  afterAll(async () => {
    await Promise.all([fixture.close(), others.close()]);
    await Promise.all([egressOf(fixture).release(), egressOf(others).release()]);
    await far?.close();
    ai?.close();
    service?.close();
  });

  test('agents reach the internet and the AI listener only', { tags: 'attack' }, async () => {
    const hosts = ownAddresses();
    expect(hosts.length).toBeGreaterThan(2);
    const forbidden = at([
      ...hosts.map((host) => [host, portOf(service)] as const),
      ...[PRIVATE, LINK_LOCAL, CARRIER_GRADE].map((host) => [host, far.port] as const),
      // The AI listener's port on an address that is not meant for agents.
      ...hosts.slice(0, 1).map((host) => [host, portOf(ai)] as const),
    ]);
    const allowed = at([
      ['host.docker.internal', portOf(ai)],
      [PUBLIC, far.port],
    ]);
    expect(await reachedBy(spec, [...forbidden, ...allowed])).toEqual([...forbidden, ...allowed]);

    expect(await egressOf(fixture).hold(false)).toEqual(WELL);
    expect(await reachedBy(spec, [...forbidden, ...allowed])).toEqual(allowed);
  });

  test('rules of one installation do not affect agents of another, even from the same pool', async () => {
    await egressOf(fixture).hold(false);
    const another = await runningAgent(others);
    const targets = at([
      [PRIVATE, far.port],
      ['host.docker.internal', portOf(service)],
    ]);
    expect(await reachedBy(another, targets)).toEqual(targets);
    const itsOwn = egressOf(others, { aiPort: portOf(service) });
    await itsOwn.hold(false);
    expect(await reachedBy(another, targets)).toEqual(targets.slice(1));
    const ownAi = at([['host.docker.internal', portOf(ai)]]);
    expect(await reachedBy(spec, [...targets, ...ownAi])).toEqual(ownAi);
  });

  test('agents reach the networks that the operator allows, and on the host only named ports', async () => {
    const [host = ''] = ownAddresses();
    const targets = at([
      [PRIVATE, far.port],
      [host, portOf(service)],
      [host, portOf(ai)],
    ]);
    const port = portOf(service);
    const allow = [{ network: '0.0.0.0/0' }, { network: host, port }];
    await egressOf(fixture, { allow }).hold(false);
    expect(await reachedBy(spec, targets)).toEqual(targets.slice(0, 2));
    await egressOf(fixture).hold(false);
    expect(await reachedBy(spec, targets)).toEqual([]);
  });

  test('removed rules are restored and verified again', async () => {
    const egress = egressOf(fixture);
    await egress.hold(false);
    const rules = await rulesOf(fixture);
    expect(await egress.hold(false)).toBeUndefined();
    const jump = rules.find((rule) => rule.startsWith('-A PREROUTING')) ?? '';
    await run('iptables', ['-t', 'mangle', ...jump.replace('-A', '-D').split(' ')]);
    await run('iptables', ['-t', 'mangle', '-F', egressChain(fixture.installation)]);
    expect(await egress.hold(false)).toEqual(WELL);
    expect(await rulesOf(fixture)).toEqual(rules);
  });

  test('egress is never open while the rules are replaced', { tags: 'attack' }, async () => {
    const egress = egressOf(fixture);
    await egress.hold(false);
    const script = `
      let [tries, reached, open] = [0, 0, 0];
      const end = Date.now() + 4000;
      (function attempt() {
        if (Date.now() > end) return open === 0 && console.log(JSON.stringify([tries, reached]));
        tries++, open++;
        const socket = require('net').connect({ host: '${PRIVATE}', port: ${far.port}, timeout: 500 });
        socket.on('connect', () => { reached++; socket.destroy(); });
        socket.on('timeout', () => socket.destroy());
        socket.on('error', () => {});
        socket.on('close', () => { open--; if (Date.now() > end) attempt(); });
        setTimeout(attempt, 2);
      })();`;
    const trying = runInContainer(fixture.docker, containerName(spec.agentId), script);
    for (let time = 0; time < 2; time++) await egress.hold(false);
    const [tries, reached] = JSON.parse((await trying).split('\n')[0] ?? '[]') as number[];
    expect(tries).toBeGreaterThan(100);
    expect(reached).toBe(0);
  });

  test('rules are removed after the last agent of their installation', async () => {
    const egress = egressOf(fixture);
    await egress.hold(false);
    await egressOf(others).hold(false);
    expect(await egress.release()).toBe(false);
    expect(await rulesOf(fixture)).not.toEqual([]);
    await fixture.containers.remove(spec.agentId);
    await fixture.host.networks.remove(spec.agentId);
    expect(await egress.release()).toBe(true);
    expect(await rulesOf(fixture)).toEqual([]);
    expect(await egress.release()).toBe(true);
    expect(await rulesOf(others)).not.toEqual([]);
  });
});

describe('the helper image', () => {
  test('names the Dockerfile and the setting when the image is unavailable', async () => {
    const image = `agent-platform-egress-helper:none-${randomInt(1_000_000)}`;
    const client = new DockerClient({ dockerHost: process.env.DOCKER_HOST });
    await expect(requireHelperImage(client, image)).rejects.toThrow(
      `Image ${image} is not on the Docker host and cannot be pulled: build it from ` +
        'dev/egress-image/Dockerfile, or set AGENT_EGRESS_IMAGE',
    );
  });

  test('makes the helper image once, and again when its inputs have changed', async () => {
    const { docker } = fixture;
    const name = `agent-platform-egress-helper:test-${randomInt(1_000_000)}`;
    const idOf = async () => (await docker.getImage(name).inspect()).Id;
    const removed = () => docker.getImage(name).remove({ force: true });
    try {
      const made = await ensureEgressImage(docker, name);
      expect(await idOf()).toBe(made);
      expect(await ensureEgressImage(docker, name)).toBe(made);
      expect(await idOf()).toBe(made);
      await removed();
      const [repo, tag] = name.split(':');
      await docker
        .getImage(await ensureTestImage(docker))
        .tag({ repo: repo ?? '', tag: tag ?? '' });
      await ensureEgressImage(docker, name);
      const { Labels: labels } = (await docker.getImage(name).inspect()).Config;
      expect(labels).toHaveProperty(['agent-platform.egress-helper.inputs']);
    } finally {
      await removed();
    }
  });
});
