import { spawn } from 'node:child_process';
import { randomBytes, randomUUID } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { findLabelled, removeLabelled } from '../../dev/docker/labelled.js';
import { builtProgram } from '../../dev/root.js';
import { connectDocker } from '../../src/docker/containers/docker-client.js';
import { LABEL } from '../../src/docker/containers/container-spec.js';
import { installationOf } from '../../src/platform/secrets/key-ring.js';
import { freeSubnet } from '../support/docker.js';
import { Place, RUNNING } from './launcher.js';

const dockerHost = process.env.DOCKER_HOST ?? 'unix:///var/run/docker.sock';
const docker = connectDocker(dockerHost);
/** A label on all that this test creates on Docker. */
const TEST_LABEL = 'test-of-clean';
const suite = randomUUID();

let place: Place;
beforeEach(async () => {
  place = await Place.make();
});
afterEach(async () => {
  await removeLabelled(dockerHost, await findLabelled(dockerHost, `${TEST_LABEL}=${suite}`));
  await place.close();
});

/** Creates a network and a volume of an installation. */
async function makeThings(installation: string): Promise<void> {
  const labels = { [LABEL.installation]: installation, [TEST_LABEL]: suite };
  const name = `agent-${randomUUID()}`;
  await docker.createVolume({ Name: name, Labels: labels });
  await docker.createNetwork({
    Name: name,
    Labels: labels,
    IPAM: { Driver: 'default', Config: [{ Subnet: freeSubnet() }] },
  });
}

const thingsOf = async (installation: string) =>
  (await findLabelled(dockerHost, `${LABEL.installation}=${installation}`)).map(({ kind }) => kind);

/** Registers an installation as `npm start` does. */
async function remember(installation: string, dataDir: string): Promise<void> {
  const register = path.join(place.stateHome, 'agent-platform-service', 'installations');
  await mkdir(register, { recursive: true });
  await writeFile(path.join(register, installation), dataDir);
}

async function clean(answer: string): Promise<{ code: number | null; output: string }> {
  const child = spawn(process.execPath, [builtProgram('scripts', 'clean.js')], {
    env: { ...process.env, DOCKER_HOST: dockerHost, XDG_STATE_HOME: place.stateHome },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve));
  child.stdin.end(answer);
  const output = await text(child.stdout);
  return { code: await ended, output };
}

test('npm start reports resources of a deleted data folder, and clean removes them after a yes', async () => {
  const [gone, unknown] = [randomBytes(8).toString('hex'), randomBytes(8).toString('hex')];
  await remember(gone, path.join(place.stateHome, 'deleted'));
  for (const each of [gone, unknown]) await makeThings(each);

  const launcher = place.start({ DOCKER_HOST: dockerHost });
  await launcher.printed(RUNNING);
  expect(launcher.output).toContain('Docker has 2 objects of a deleted installation');
  launcher.kill('SIGINT');
  await launcher.ended;
  const alive = installationOf(place.encryptionKey);
  await makeThings(alive);

  for (const answer of ['', 'no\n']) {
    const refused = await clean(answer);
    expect(refused.output).toMatch(/ {2}network agent-.*\n {2}volume agent-/);
    expect(refused).toMatchObject({
      code: 1,
      output: expect.stringContaining('No object was removed'),
    });
  }
  expect(await thingsOf(gone)).toEqual(['network', 'volume']);

  expect(await clean('yes\n')).toMatchObject({ code: 0 });
  expect(await thingsOf(gone)).toEqual([]);
  for (const each of [alive, unknown]) expect(await thingsOf(each)).toEqual(['network', 'volume']);
  expect(await clean('')).toMatchObject({
    code: 0,
    output: 'Docker has no objects of a deleted installation.\n',
  });
});
