// @module-tag attack
import { randomUUID } from 'node:crypto';
import { finished } from 'node:stream/promises';
import { recoverTypedDataAddress, serializeSignature } from 'viem';
import { generatePrivateKey, privateKeyToAddress } from 'viem/accounts';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readAgentTokens } from '../../../src/agents/credentials/agent-secrets.js';
import { evidenceOf } from '../../../src/agents/verification/evidence.js';
import { connectDocker } from '../../../src/docker/containers/docker-client.js';
import { containerName, STATE_DIRECTORY } from '../../../src/docker/containers/container-spec.js';
import { CONFIG_FILE } from '../../../src/docker/containers/openclaw-config.js';
import { verifyAgentId } from '../../../workflows/ids.js';
import { ensureTestImage } from '../../agent-image/ensure-test-image.js';
import { newAddress, type Answer } from '../../support/http.js';
import { freeSubnet, TEST_RUN_LABEL } from '../../support/docker.js';
import { startPayments } from '../../support/payment-process.js';
import { until } from '../../support/until.js';
import { testPlatform, type TestPlatform, type TestUser } from '../../support/platform.js';

const REPOSITORY = 'agent-platform-test/verified';
const TAG = randomUUID();

const operatorKey = generatePrivateKey();

let on: TestPlatform;
let user: TestUser;
let id: string;
let stopPayments: (() => Promise<void>) | undefined;

beforeAll(async () => {
  // A name of its own, which a test moves to another image.
  const docker = connectDocker(process.env.DOCKER_HOST);
  await docker.getImage(await ensureTestImage(docker)).tag({ repo: REPOSITORY, tag: TAG });
  // Without probes by the watchdog, which would repair what a test breaks.
  const env = { AGENT_RUNTIME_IMAGE: `${REPOSITORY}:${TAG}`, WATCHDOG_CHECK_INTERVAL: '60m' };
  on = await testPlatform({ env });
  user = await on.signUp('network');
  id = await on.runningAgent(user);
  stopPayments = startPayments(on, operatorKey);
});
afterAll(async () => {
  await stopPayments?.();
  await on?.close();
  await on?.docker.getImage(`${REPOSITORY}:${TAG}`).remove();
});

/** Verifies by the backend from an address of its own, where no limit of a user counts. */
const verify = () =>
  on.backend(user, 'POST', `/api/agents/${id}/verify`, {
    headers: { 'x-forwarded-for': newAddress() },
  });
/** Labels by which the fixture removes what a test makes. */
async function labels(): Promise<Record<string, string>> {
  const { Config: config } = await container().inspect();
  return { [TEST_RUN_LABEL]: config.Labels[TEST_RUN_LABEL] ?? '' };
}
const container = () => on.docker.getContainer(containerName(id));
const detailOf = (body: Answer['body'], name: string): string =>
  body.checks.find((check: { name: string }) => check.name === name).detail;
const operate = async (action: string) =>
  (await on.backend(user, 'POST', `/api/agents/${id}/${action}?wait=60`)).body.status;
const settled = () =>
  until(async () => {
    const open = `SELECT FROM operations WHERE agent_id = $id AND finished_at IS NULL`;
    return (await on.db.asPlatform().query(open, { id })).length === 0;
  });

/** Runs a script on `f`, the agent's configuration, in its container as its user, to the end. */
async function inContainer(script: string): Promise<void> {
  const head = `const fs = require('fs'), f = '${STATE_DIRECTORY}/${CONFIG_FILE}';`;
  const Cmd = ['node', '-e', head + script];
  const run = await container().exec({ Cmd, AttachStdout: true, AttachStderr: true });
  const output = await run.start({});
  output.resume();
  await finished(output);
  expect((await run.inspect()).ExitCode).toBe(0);
}

const shown = async (agent = id) => (await on.web(user, 'GET', `/api/agents/${agent}/verify`)).body;
const failing = (body: { checks: readonly { name: string; ok: boolean }[] }) =>
  body.checks.filter(({ ok }) => !ok).map(({ name }) => name);

const NOTHING = {
  verified: false,
  verificationType: null,
  attestationUid: null,
  verifiedAt: null,
  checks: [],
  attestation: null,
};

test('a running agent passes all checks, and its attestation is signed by the operator', async () => {
  expect(await shown()).toEqual({ agentId: id, ...NOTHING });
  const { body, status } = await on.web(user, 'POST', `/api/agents/${id}/verify`);
  expect(status, JSON.stringify(body)).toBe(200);
  expect(failing(body), JSON.stringify(body.checks)).toEqual([]);
  expect(body).toMatchObject({ agentId: id, verified: true, verificationType: 'runtime' });
  expect(await shown()).toEqual(body);
  const ofBackend = await on.backend(user, 'GET', `/api/agents/${id}/verification`);
  expect(ofBackend.body).toEqual(body);
  const detail = await on.backend(user, 'GET', `/api/agents/${id}`);
  const { attestation, attestationUid, verifiedAt } = body;
  const summary = { verified: true, verificationType: 'runtime', attestationUid, verifiedAt };
  expect(detail.body).toMatchObject(summary);
  expect(attestation.uid).toBe(attestationUid);
  const { r, s, v } = attestation.signature;
  const { time } = attestation.message;
  const signer = await recoverTypedDataAddress({
    ...attestation,
    message: { ...attestation.message, time: BigInt(time), expirationTime: 0n },
    signature: serializeSignature({ r, s, v: BigInt(v) }),
  });
  expect(signer).toBe(privateKeyToAddress(operatorKey));
  expect(attestation.message.data).toContain(evidenceOf(body.checks).slice(2));
  expect(Number(time)).toBe(Math.floor(Date.parse(verifiedAt) / 1_000));
});

describe('tampering', () => {
  test('a changed configuration fails its check, until a restart writes it again', async () => {
    await inContainer(
      `const c = JSON.parse(fs.readFileSync(f)); c.gateway.auth.mode = 'none';
       c.models.mode = 'merge'; fs.writeFileSync(f, JSON.stringify(c))`,
    );
    const { body } = await verify();
    expect(body).toMatchObject({ verified: false, verificationType: 'runtime' });
    expect(failing(body)).toEqual(['configuration']);
    expect(detailOf(body, 'configuration')).toBe('openclaw.json differs in gateway, models');
    // A failed verification is attested, too.
    expect(body.attestation.uid).toBe(body.attestationUid);

    // An agent may write only as its own user; no link leads out of its volume.
    await inContainer(`fs.rmSync(f); fs.symlinkSync('/etc/passwd', f)`);
    expect(detailOf((await verify()).body, 'configuration')).toBe('openclaw.json cannot be read');
    await inContainer(`fs.rmSync(f); fs.writeFileSync(f, Buffer.alloc(2_000_000))`);
    expect(detailOf((await verify()).body, 'configuration')).toBe('openclaw.json cannot be read');
    await inContainer(`fs.rmSync(f)`);
    const last = (await verify()).body;
    expect(detailOf(last, 'configuration')).toBe('openclaw.json cannot be read');
    expect(await operate('restart')).toBe('succeeded');
    // A restart replaces neither container, configuration nor memory.
    expect(await shown()).toEqual(last);
    expect((await verify()).body).toMatchObject({ verified: true });
  });

  test('changed limits and a second network fail the profile', async () => {
    const Memory = 512 * 1024 * 1024;
    await container().update({ Memory, MemorySwap: Memory, PidsLimit: 4_000 });
    const network = await on.docker.createNetwork({
      Name: `other-${id}`,
      Labels: await labels(),
      IPAM: { Config: [{ Subnet: freeSubnet() }] },
    });
    await network.connect({ Container: containerName(id) });
    const { body } = await verify();
    expect(failing(body)).toEqual(['profile']);
    expect(detailOf(body, 'profile')).toBe('differs in PidsLimit, Memory, MemorySwap, Networks');
    await network.disconnect({ Container: containerName(id), Force: true });
    await network.remove();
    expect(await operate('stop')).toBe('succeeded');
    expect((await verify()).status).toBe(409);
    expect(await operate('start')).toBe('succeeded');
    expect((await verify()).body).toMatchObject({ verified: true });
  });

  test('a foreign container on the network of the agent fails the check of the profile', async () => {
    const { Config: config } = await container().inspect();
    const stranger = await on.docker.createContainer({
      Image: config.Image,
      Labels: await labels(),
      HostConfig: { NetworkMode: containerName(id), Init: true },
    });
    await stranger.start();
    expect(detailOf((await verify()).body, 'profile')).toBe('differs in network');
    await stranger.remove({ force: true });
  });

  test('a second container with the labels of the agent fails the check of the container', async () => {
    const { Config: config } = await container().inspect();
    const copy = await on.docker.createContainer({ Image: config.Image, Labels: config.Labels });
    const { body } = await verify();
    expect(failing(body)).toEqual(['container', 'profile', 'configuration']);
    expect(detailOf(body, 'container')).toContain('2 containers');
    await copy.remove();
  });

  test('an image that differs from the one of the release fails the check of the container', async () => {
    const { Config: config, Image: image } = await container().inspect();
    const other = await on.docker.createContainer({ Image: config.Image, Labels: await labels() });
    const named = { repo: REPOSITORY, tag: TAG };
    const committed = await other.commit({ ...named, changes: 'LABEL changed=yes' });
    const { body } = await verify();
    await on.docker.getImage(image).tag(named);
    await other.remove();
    await on.docker.getImage(committed.Id).remove();
    expect(failing(body)).toEqual(['container']);
    expect(detailOf(body, 'container')).toContain(`has the image ${image}`);
  });

  test('a gateway that is not ready fails its check, and one that is open as well', async () => {
    await on.orderAgent(id, { mode: 'draining' });
    expect(detailOf((await verify()).body, 'gateway')).toBe('the gateway is not ready');
    await on.orderAgent(id, { mode: 'healthy', open: true });
    const { body } = await verify();
    expect(failing(body)).toEqual(['gateway']);
    expect(detailOf(body, 'gateway')).toBe('the gateway does not refuse a call without its token');
    await on.orderAgent(id, { open: false });
    expect((await verify()).body).toMatchObject({ verified: true });
  });

  test('an agent that is just starting is measured once its gateway is ready', async () => {
    await on.orderAgent(id, { startsAfter: 2 });
    expect((await verify()).body).toMatchObject({ verified: true });
  });
});

describe('end of a verification', () => {
  test('removing the verification succeeds, even twice', async () => {
    expect((await verify()).body).toMatchObject({ verified: true });
    for (const _ of [1, 2]) {
      const { body, status } = await on.web(user, 'DELETE', `/api/agents/${id}/verify`);
      expect([status, body]).toEqual([200, { success: true }]);
      expect(await shown()).toEqual({ agentId: id, ...NOTHING });
    }
  });

  test('a new configuration and a new memory clear it', async () => {
    expect((await verify()).body).toMatchObject({ verified: true });
    const body = { config: { note: 'changed' } };
    expect((await on.web(user, 'PUT', `/api/agents/${id}`, { body })).status).toBe(200);
    await until(async () => (await shown()).verificationType === null);
    await settled();
    expect((await verify()).body).toMatchObject({ verified: true });
    expect(await operate('reset-memory')).toBe('succeeded');
    expect(await shown()).toEqual({ agentId: id, ...NOTHING });
    const detail = await on.backend(user, 'GET', `/api/agents/${id}`);
    expect(detail.body).toMatchObject({ verified: false, verificationType: null });
  });
});

test('no verification outlives a configuration that is requested at the same time', async () => {
  const requests = Array.from({ length: 50 }, () => verify());
  const body = { config: { note: 'at once' } };
  const configured = await on.backend(user, 'PUT', `/api/agents/${id}`, { body });
  expect(configured.status).toBe(200);
  const answers = await Promise.all(requests);
  expect(answers.filter(({ status }) => status !== 200 && status !== 409)).toEqual([]);
  await settled();
  const [last] = await on.db
    .asPlatform()
    .query<{ at: Date }>('SELECT max(finished_at) AS at FROM operations WHERE agent_id = $id', {
      id,
    });
  const { verifiedAt } = await shown();
  const isOlder = verifiedAt !== null && Date.parse(verifiedAt) < Number(last?.at);
  expect(isOlder).toBe(false);
  expect((await verify()).body).toMatchObject({ verified: true });
});

test('50 concurrent requests share one measurement', async () => {
  const count = async () =>
    (await on.db.asPlatform().query('SELECT FROM agent_verifications')).length;
  const before = await count();
  const answers = await Promise.all(Array.from({ length: 50 }, () => verify()));
  expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
  // Requests that arrive after the end of the first measurement begin a second.
  expect((await count()) - before).toBeLessThanOrEqual(5);
  const current = await on.db
    .asPlatform()
    .query(`SELECT FROM agent_verifications WHERE agent_id = $id AND state = 'current'`, { id });
  expect(current).toHaveLength(1);
});

test('a user verifies ten times a minute, by all sessions and keys', async () => {
  const other = await on.signUp('network');
  const tries = await Promise.all(
    Array.from({ length: 11 }, () => on.web(other, 'POST', `/api/agents/${id}/verify`)),
  );
  const statuses = tries.map(({ status }) => status).sort();
  expect(statuses).toEqual([...Array.from({ length: 10 }, () => 404), 429]);
});

test('without the payments process there is no attestation, and the next verification has one', async () => {
  await stopPayments?.();
  stopPayments = undefined;
  const { body } = await verify();
  expect(body).toMatchObject({ verified: true, attestation: null, attestationUid: null });
  stopPayments = startPayments(on, operatorKey);
  expect((await verify()).body).toMatchObject({
    verified: true,
    attestationUid: expect.stringMatching(/^0x[\da-f]{64}$/),
  });
});

test('no secret of the agent is in its verification or in the run of it', async () => {
  const tokens = await readAgentTokens(on.db.asPlatform(), on.secrets, id);
  const { events } = await on.temporal.client.workflow.getHandle(verifyAgentId(id)).fetchHistory();
  const text = JSON.stringify([await shown(), events]);
  for (const token of [...tokens, operatorKey, operatorKey.slice(2)]) {
    expect(text).not.toContain(token);
    expect(text).not.toContain(Buffer.from(token).toString('base64').slice(2, -4));
  }
});
