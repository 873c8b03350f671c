import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { readAgentTokens } from '../../../src/agents/credentials/agent-secrets.js';
import { containerName } from '../../../src/docker/containers/container-spec.js';
import { readMemory, writeMemory } from '../../support/agent-memory.js';
import { CHAIN_ID, testChain, type TestChain } from '../../support/chain/chain.js';
import { until } from '../../support/until.js';
import { testPlatform, type TestPlatform, type TestUser } from '../../support/platform.js';

const TREASURY = '0x7ea5000000000000000000000000000000000002';

let chain: TestChain;
let platform: TestPlatform;
let ada: TestUser;
beforeAll(async () => {
  chain = await testChain();
  platform = await testPlatform({
    env: { CHAIN_RPC_URL: chain.rpcUrl, CHAIN_CONFIRMATIONS: '1', TREASURY_ADDRESS: TREASURY },
  });
  ada = await platform.signUp('network');
});
afterAll(async () => {
  await platform?.close();
  await chain?.close();
});

const write = (id: string, file: string, text: string) =>
  writeMemory(platform.docker, id, file, text);
const read = (id: string, file: string) => readMemory(platform.docker, id, file);

async function cloneOf(parentAgentId: string, given: Readonly<Record<string, unknown>> = {}) {
  const transactionHash = await chain.pay(TREASURY, 1_000_000n);
  const answer = await platform.web(ada, 'POST', '/api/agents/clone', {
    body: {
      parentAgentId,
      name: `clone ${randomUUID()}`,
      paymentProof: {
        transactionHash,
        amount: '1.0',
        currency: 'pathUSD',
        chainId: CHAIN_ID,
        from: chain.account(0).address,
        to: TREASURY,
        timestamp: Math.floor(Date.now() / 1_000),
      },
      ...given,
    },
  });
  expect(answer).toMatchObject({ status: 202, body: { success: true } });
  return answer.body.clone;
}

test("a clone starts with its running parent's memory but without the parent's sessions and credentials", async () => {
  const config = { runtime: { messages: { ackReaction: 'a' } } };
  const parent = await platform.runningAgent(ada, { config });
  await write(parent, 'memory', 'all that it knew');
  await write(parent, '.openclaw/workspace/notes.md', 'notes');
  await write(parent, '.openclaw/agents/main/sessions/one.jsonl', 'a conversation');
  await write(parent, '.openclaw/credentials/oauth.json', 'a credential');
  const before = await platform.docker.getContainer(containerName(parent)).inspect();

  const clone = await cloneOf(parent, { specialization: 'promo', generation: 4 });
  expect(clone).toMatchObject({
    parentAgentId: parent,
    generation: 5,
    specialization: 'promo',
    status: 'provisioning',
  });
  await platform.becomes(clone.id, 'active');

  expect(await read(clone.id, 'memory')).toBe('all that it knew');
  expect(await read(clone.id, '.openclaw/workspace/notes.md')).toBe('notes');
  expect(await read(clone.id, '.openclaw/agents/main/sessions/one.jsonl')).toBe('nothing');
  expect(await read(clone.id, '.openclaw/credentials/oauth.json')).toBe('nothing');
  expect(await read(clone.id, '.openclaw/openclaw.json')).toContain('ackReaction');
  const secrets = await read(clone.id, '.openclaw/.env');
  const tenant = platform.db.asUser(ada.id);
  for (const token of await readAgentTokens(tenant, platform.secrets, parent)) {
    expect(secrets).not.toContain(token);
  }
  for (const token of await readAgentTokens(tenant, platform.secrets, clone.id)) {
    expect(secrets).toContain(token);
  }
  const after = await platform.docker.getContainer(containerName(parent)).inspect();
  expect(after.State.StartedAt).toBe(before.State.StartedAt);
  expect(after.State.Running).toBe(true);

  // The agents are independent: writing to or removing one leaves the other unchanged.
  await write(clone.id, 'memory', 'something else');
  expect(await read(parent, 'memory')).toBe('all that it knew');
  await platform.backend(ada, 'DELETE', `/api/agents/${parent}`);
  await until(async () => (await platform.resourcesOf(parent)).length === 0);
  expect(await read(clone.id, 'memory')).toBe('something else');
});
