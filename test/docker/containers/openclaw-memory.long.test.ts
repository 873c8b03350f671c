import { afterAll, beforeAll, expect, test } from 'vitest';
import * as z from 'zod';
import {
  containerName,
  volumeName,
  STATE_DIRECTORY,
  type AgentContainerSpec,
} from '../../../src/docker/containers/container-spec.js';
import { gatewayReady } from '../../../src/docker/containers/gateway-probe.js';
import { isOfOneAgent, openClawSecrets } from '../../../src/docker/containers/openclaw-config.js';
import { tryParseJson } from '../../../src/lib/json.js';
import { readMemory, writeMemory } from '../../support/agent-memory.js';
import { runInContainer } from '../../support/run-in-container.js';
import { until } from '../../support/until.js';
import { OpenClawLab, SAID, TOKENS } from './openclaw-lab.js';

const TOKENS_OF_CLONE = { gatewayToken: 'gateway-token-of-clone', aiToken: 'ai-token-of-clone' };
const NOTES = '.openclaw/workspace/notes.md';
const FINGERPRINT = '.openclaw/config-journal-fingerprint.key';

let lab: OpenClawLab;
let spec: AgentContainerSpec;

beforeAll(async () => {
  lab = await OpenClawLab.open();
  spec = await lab.start();
  expect((await lab.ask(spec.port, TOKENS.gatewayToken)).status).toBe(200);
}, 20 * 60_000);
afterAll(() => lab?.close());

test('starts a clone of a running agent with its files and without its identity', async () => {
  const { docker, host } = lab.fixture;
  await writeMemory(docker, spec.agentId, NOTES, 'what it knows');
  const clone: AgentContainerSpec = {
    ...(await lab.another()),
    env: spec.env,
    files: spec.files,
    secrets: openClawSecrets(TOKENS_OF_CLONE),
  };
  const parent = { agentId: spec.agentId, userId: spec.userId, volume: volumeName(spec) };
  await host.networks.ensure(clone);
  await host.volumes.copy(clone, { ...parent, leavesOut: isOfOneAgent }, 'test');
  await lab.comeUp(clone);
  expect(await readMemory(docker, clone.agentId, NOTES)).toBe('what it knows');
  // The parent's conversation, tokens and fingerprint.
  const own = [SAID, ...Object.values(TOKENS), await fingerprintOf(spec.agentId)];
  const [ofParent, ofClone] = await Promise.all(
    [spec, clone].map(({ agentId }) => foundIn(agentId, own)),
  );
  expect(ofParent).toEqual(own);
  expect(ofClone).toEqual([]);
  expect(await foundIn(clone.agentId, Object.values(TOKENS_OF_CLONE))).toHaveLength(2);
  expect((await lab.ask(clone.port, TOKENS.gatewayToken)).status).toBe(401);
  expect((await gatewayReady(spec.port, { timeoutMs: 30_000 })).ready).toBe(true);
});

test('starts a new container on the memory of a killed one', async () => {
  const killed = lab.fixture.docker.getContainer(containerName(spec.agentId));
  await killed.kill({ signal: 'SIGKILL' });
  await killed.remove({ force: true });
  await lab.comeUp(spec);
});

/** Returns the key with which a gateway recognizes its own config writes. */
const fingerprintOf = (agentId: string): Promise<string> =>
  runInContainer(
    lab.fixture.docker,
    containerName(agentId),
    `process.stdout.write(require('fs').readFileSync('${STATE_DIRECTORY}/${FINGERPRINT}', 'latin1'))`,
  );

/**
 * Returns those of the texts that occur in any file of an agent's memory. The running gateway may replace
 * a file between listing and reading, which ends the script with an error: the search is then repeated.
 */
async function foundIn(agentId: string, texts: readonly string[]): Promise<string[]> {
  const search = `
    const fs = require('fs'), wanted = ${JSON.stringify(texts)};
    const files = fs.readdirSync('${STATE_DIRECTORY}', { recursive: true, withFileTypes: true });
    const all = files.filter((each) => each.isFile()).map(({ name, parentPath }) =>
      fs.readFileSync(parentPath + '/' + name, 'latin1'));
    console.log(JSON.stringify(wanted.filter((each) => all.some((text) => text.includes(each)))))`;
  return until(async () => {
    const output = await runInContainer(lab.fixture.docker, containerName(agentId), search);
    return z.array(z.string()).safeParse(tryParseJson(output)).data;
  });
}
