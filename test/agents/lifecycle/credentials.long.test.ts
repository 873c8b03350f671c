import { TABLES } from '../../../src/platform/database/models.js';
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { actionsOn, agentWithActions } from '../../support/agent-actions.js';
import {
  beginCredential,
  MAX_CREDENTIALS,
  readCredentials,
  requestCredential,
  rollBackCredential,
  sealCredential,
} from '../../../src/agents/credentials/agent-credentials.js';
import { until } from '../../support/until.js';
import { textsOfHistories } from '../../support/histories.js';
import type { TestPlatform, TestUser } from '../../support/platform.js';
import { runInContainer } from '../../support/run-in-container.js';
import { workerLog } from '../../support/temporal.js';

let platform: TestPlatform;
let ada: TestUser;
let agentId: string;

beforeAll(async () => {
  ({ platform, ada, agentId } = await agentWithActions());
});
afterAll(() => platform?.close());

const { act, setCredential, readAgent: check } = actionsOn(() => ({ platform, ada, agentId }));

/** Reads the agent's secrets file in the container, as its runtime does. */
async function environment(id = agentId): Promise<Record<string, string>> {
  const read = `console.log(JSON.stringify(require('util').parseEnv(
    require('fs').readFileSync('/home/node/.openclaw/.env', 'utf8'))))`;
  return JSON.parse(await runInContainer(platform.docker, `agent-${id}`, read));
}

async function wholeDatabase(): Promise<string> {
  const all: unknown[] = [];
  for (const { name } of TABLES) {
    all.push(await platform.db.asPlatform().query(`SELECT to_jsonb(t) FROM ${name} t`));
  }
  return JSON.stringify(all);
}

const credentialsOf = (id: string) =>
  platform.db.asPlatform().transaction((db) =>
    db.AgentCredential.findAll({
      where: { agentId: id },
    }),
  );

const succeeded = {
  id: expect.any(String),
  operation: 'configure',
  operationId: expect.any(String),
  status: 'succeeded',
  error: null,
};

describe('a credential', () => {
  const first = `first ${randomUUID()}`;
  const second = `second ${randomUUID()}\nof two lines = ünïcödé`;

  test(
    'a credential is in the environment when its operation ends, and can be replaced and removed',
    { tags: 'attack' },
    async () => {
      const before = await environment();
      const made = await setCredential('SHOP_TOKEN', first);
      expect([made.status, made.body]).toEqual([202, { ...succeeded, id: agentId }]);
      expect(await environment()).toEqual({ ...before, SHOP_TOKEN: first });
      expect((await check()).credentials).toEqual([
        { name: 'SHOP_TOKEN', updatedAt: expect.stringMatching(/Z$/) },
      ]);
      expect(await wholeDatabase()).not.toContain(first);

      expect((await setCredential('OTHER', 'another one')).status).toBe(202);
      expect((await setCredential('SHOP_TOKEN', second)).body).toMatchObject(succeeded);
      expect(await environment()).toEqual({ ...before, SHOP_TOKEN: second, OTHER: 'another one' });
      const known = JSON.stringify(
        await platform.docker.getContainer(`agent-${agentId}`).inspect(),
      );
      for (const secret of [...Object.values(before), second, 'SHOP_TOKEN', 'another one']) {
        expect(known).not.toContain(JSON.stringify(secret).slice(1, -1));
      }
      expect(await credentialsOf(agentId)).toHaveLength(2);

      expect((await setCredential('OTHER', null)).body).toMatchObject(succeeded);
      expect(await environment()).toEqual({ ...before, SHOP_TOKEN: second });
      expect((await check()).credentials).toMatchObject([{ name: 'SHOP_TOKEN' }]);
      expect(await credentialsOf(agentId)).toHaveLength(1);
      const gone = await setCredential('OTHER', null);
      expect([gone.status, gone.body.error]).toEqual([404, 'Credential not found']);
    },
  );

  test("a credential is redacted in the agent's log", async () => {
    const [line] = second.split('\n');
    await platform.orderAgent(agentId, { print: { lines: 1, text: `it is ${line}` } });
    const path = `/api/logs/${agentId}/history?limit=1000`;
    await expect
      .poll(async () => (await platform.backend(ada, 'GET', path)).text)
      .toContain('it is [redacted]');
    expect((await platform.backend(ada, 'GET', path)).text).not.toContain(line);
  });

  test('rolls back a credential with which the agent does not start', async () => {
    const before = await environment();
    const failed = await setCredential('EXIT_AT_START', '3');
    expect(failed.body).toMatchObject({ status: 'failed' });
    expect(failed.body.error).toContain('rolled back');
    expect(await environment()).toEqual(before);
    expect((await check()).status).toBe('running');
    expect(await credentialsOf(agentId)).toMatchObject([{ name: 'SHOP_TOKEN', state: 'present' }]);
  });

  test('a failed replacement restores the former credential', async () => {
    const agent = { id: agentId, userId: ada.id };
    const change = (value: string | null) =>
      sealCredential(platform.secrets, agentId, { name: 'SHOP_TOKEN', value });
    const environmentNow = () =>
      readCredentials(platform.db.asUser(ada.id), platform.secrets, agentId);
    const before = await environmentNow();
    const version = (await credentialsOf(agentId))[0]?.operationId;
    for (const value of ['in vain', null]) {
      const operationId = randomUUID();
      await platform.db.asUser(ada.id).transaction(async (db) => {
        await requestCredential(db, agent, operationId, change(value));
        await beginCredential(db, operationId);
      });
      expect(await environmentNow()).toEqual(value === null ? {} : { SHOP_TOKEN: value });
      // Each step is idempotent.
      await platform.db.asUser(ada.id).transaction(async (db) => {
        await beginCredential(db, operationId);
        await rollBackCredential(db, operationId);
        await rollBackCredential(db, operationId);
      });
      expect(await environmentNow()).toEqual(before);
      expect(await credentialsOf(agentId)).toMatchObject([{ operationId: version }]);
    }
  });

  test('a credential set on a stopped agent takes effect at its next start', async () => {
    const id = await platform.runningAgent(ada);
    await platform.web(ada, 'POST', `/api/agents/${id}/stop?wait=60`);
    expect((await check(id)).actions).not.toContain('chat');
    const set = await setCredential('SHOP_TOKEN', first, { agentId: id });
    expect(set.body).toMatchObject(succeeded);
    await platform.web(ada, 'POST', `/api/agents/${id}/start?wait=60`);
    expect(await environment(id)).toMatchObject({ SHOP_TOKEN: first });
  });

  test('refuses a credential during another change of the agent and stores nothing of it', async () => {
    const id = await platform.runningAgent(ada);
    const body = { action: 'set-credential', agentId: id, name: 'START_DELAY_MS' };
    const set = (value: string, wait: number) =>
      platform.web(ada, 'POST', `/api/agent?wait=${wait}`, { body: { ...body, value } });
    const begun = await set('4000', 0);
    expect(begun.status).toBe(202);
    // A second change of the same credential, and a different operation.
    expect((await set('4000', 60)).status).toBe(409);
    expect((await act('update-skill', { agentId: id, skill: 'x', enabled: true })).status).toBe(
      409,
    );
    const { operationId } = begun.body;
    expect(await credentialsOf(id)).toMatchObject([{ operationId }]);
    await until(async () => {
      const path = `/api/agents/${id}/operations`;
      const { operations } = (await platform.web(ada, 'GET', path)).body;
      return operations[0].id === operationId && operations[0].status === 'succeeded';
    });
    expect(await environment(id)).toMatchObject({ START_DELAY_MS: '4000' });
  });

  test('a credential request repeated with its Idempotency-Key is applied once', async () => {
    const headers = { 'idempotency-key': randomUUID() };
    const body = { name: 'SHOP_TOKEN', value: second };
    const one = await act('set-credential', body, { headers });
    const two = await act('set-credential', body, { headers });
    expect([one.status, two.body]).toEqual([202, one.body]);
    const other = await act('set-credential', { ...body, value: first }, { headers });
    expect(other.status).toBe(422);
  });

  test('an agent has fifty credentials at most', async () => {
    const { id: userId } = ada;
    const id = await platform.runningAgent(ada);
    const rows = Array.from({ length: MAX_CREDENTIALS - 1 }, (_, index) => ({
      ...sealCredential(platform.secrets, id, { name: `NUMBER_${index}`, value: 'number' }),
      operationId: randomUUID(),
      agentId: id,
      userId,
      state: 'present' as const,
      updatedAt: new Date(),
    }));
    await platform.db.asUser(userId).transaction(async (db) => {
      await db.AgentCredential.bulkCreate(rows);
    });
    expect((await setCredential('LAST', 'the last', { agentId: id })).status).toBe(202);
    const refused = await setCredential('TOO_MANY', 'one too many', { agentId: id });
    expect([refused.status, refused.body]).toMatchObject([
      409,
      { current: MAX_CREDENTIALS, limit: MAX_CREDENTIALS },
    ]);
    expect((await setCredential('NUMBER_7', 'changed', { agentId: id })).status).toBe(202);
    expect(await environment(id)).toMatchObject({ NUMBER_7: 'changed', LAST: 'the last' });
  });

  test('credentials are removed with their agent and left no copy elsewhere', async () => {
    const id = await platform.runningAgent(ada);
    const [before, after] = [`before ${randomUUID()}`, `after ${randomUUID()}`];
    await setCredential('SHOP_TOKEN', before, { agentId: id });
    await setCredential('SHOP_TOKEN', after, { agentId: id });
    expect(await environment(id)).toMatchObject({ SHOP_TOKEN: after });
    await platform.web(ada, 'DELETE', `/api/agents/${id}`);
    await until(async () => (await credentialsOf(id)).length === 0);

    const leaked = (text: string) =>
      [before, after, 'first ', 'second '].filter((value) => text.includes(value));
    await until(async () => {
      const { texts } = await textsOfHistories(platform.temporal.client);
      expect(leaked(texts.join('\n'))).toEqual([]);
      // Temporal's list of workflows lags slightly.
      return texts.some((text) => text.includes(id));
    });
    const stored = await wholeDatabase();
    expect(leaked(stored)).toEqual([]);
    expect(stored).toContain('"credential":"SHOP_TOKEN"');
    expect(leaked(platform.logged.join('\n'))).toEqual([]);
    expect(leaked(workerLog.join('\n'))).toEqual([]);
  });
});
