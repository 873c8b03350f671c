import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { freePort } from '../../dev/ports.js';
import { examine } from '../../src/doctor/check.js';
import { temporalCheck } from '../../temporal/temporal-check.js';
import { testTemporal, type TestTemporal } from '../support/temporal.js';

let temporal: TestTemporal;
beforeAll(async () => {
  temporal = await testTemporal();
});
afterAll(() => temporal?.close());

async function findingsOf(address: string, namespace: string): Promise<string[]> {
  const env = { TEMPORAL_ADDRESS: address, TEMPORAL_NAMESPACE: namespace };
  const findings = await examine([temporalCheck], env);
  return findings.map(({ status, text }) => `${status}: ${text}`);
}

test('accepts a Temporal that has the namespace', async () => {
  const { address, namespace } = temporal;
  expect(await findingsOf(address, namespace)).toEqual([
    `ok: Temporal answers at ${address}, and has the namespace "${namespace}".`,
  ]);
});

test('names a namespace that does not exist, with the command that creates it', async () => {
  expect(await findingsOf(temporal.address, 'absent')).toEqual([
    expect.stringMatching(
      /^failure: .* no namespace "absent": run temporal operator namespace create --namespace absent /,
    ),
  ]);
});

test('names an unreachable Temporal', async () => {
  const address = `127.0.0.1:${await freePort()}`;
  expect(await findingsOf(address, 'default')).toEqual([
    `failure: Temporal does not answer at ${address}: start it, or correct TEMPORAL_ADDRESS.`,
  ]);
});

test('names a server that accepts connections and never answers', async () => {
  const silent = createServer().listen(0, '127.0.0.1');
  await once(silent, 'listening');
  onTestFinished(() => void silent.close());
  const { port } = silent.address() as AddressInfo; // never a string for a TCP listener
  expect(await findingsOf(`127.0.0.1:${port}`, 'default')).toEqual([
    expect.stringContaining(`failure: Temporal does not answer at 127.0.0.1:${port}`),
  ]);
});
