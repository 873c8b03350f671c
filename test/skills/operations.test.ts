// @module-tag attack
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { SKILL_LIMIT_REACHED, skillsIn } from '../../src/agents/model/agent-skills.js';
import { OperationStore } from '../../src/agents/operations/operation-store.js';
import { requestOperation, withdrawOperation } from '../../src/agents/operations/operations.js';
import { ReleaseStore } from '../../src/agents/operations/release-store.js';
import {
  copyInstalls,
  installedSkills,
  skillTexts,
} from '../../src/agents/skills/installed-skills.js';
import type { TenantDatabase } from '../../src/platform/database/database.js';
import { testSecrets } from '../support/secrets.js';
import { queryRows } from '../platform/database/catalog.js';
import { insertSql, ROWS } from '../platform/database/rows.js';
import { testDatabase, type TestDatabase } from '../support/postgres.js';

const AGENT = { agentId: 'alice-agent-1', userId: 'alice', host: 'local' };
const BY = { actor: 'alice', requestId: 'request' };

let database: TestDatabase;
let tenant: TenantDatabase;
let store: OperationStore;
let releases: ReleaseStore;

beforeAll(async () => {
  database = await testDatabase();
  tenant = database.db.asUser('alice');
  store = new OperationStore(database.db, testSecrets());
  releases = new ReleaseStore(database.db);
  await queryRows(database.ownerUrl, insertSql('users', ROWS.users?.('alice', 1) ?? {}));
  for (const n of [1, 2]) {
    const row = { ...ROWS.agents?.('alice', n), name: `agent ${n}`, config: '{}' };
    await queryRows(database.ownerUrl, insertSql('agents', row));
  }
});
afterAll(() => database?.close());

/** Requests the installation of a version, or the removal of a skill. */
async function request(name: string, version: number | null, skillLimit = 2): Promise<string> {
  const id = randomUUID();
  const install = { name, skillId: null, version };
  await requestOperation(
    tenant,
    { id: AGENT.agentId, userId: AGENT.userId },
    {
      ...{ id, kind: 'configure', by: BY, input: { install, skillLimit } },
      install: { ...install, content: version === null ? null : `${name} ${version}` },
    },
  );
  return id;
}

const begin = (id: string) => store.begin(AGENT, { id, kind: 'configure', runId: 'run' });
const finish = (id: string, status: 'succeeded' | 'failed' = 'succeeded') =>
  store.finish(AGENT, { id, kind: 'configure', status, error: null, unharmed: true });
const texts = () => skillTexts(tenant, AGENT.agentId);
const entries = async () => {
  const { config } = await tenant.transaction((db) => db.Agent.getByPk(AGENT.agentId));
  return skillsIn(config).map(({ name }) => name);
};

test('an installation has effect from its beginning, and a rollback restores text and entry', async () => {
  const first = await request('one', 1);
  expect(await texts()).toEqual({});
  expect(await begin(first)).toBe('begun');
  expect([await texts(), await entries()]).toEqual([{ one: 'one 1' }, ['one']]);
  await finish(first);

  const second = await request('one', 2);
  await begin(second);
  await begin(second);
  expect(await texts()).toEqual({ one: 'one 2' });
  await releases.rollBackRelease(AGENT, second);
  await releases.rollBackRelease(AGENT, second);
  await finish(second, 'failed');
  expect([await texts(), await entries()]).toEqual([{ one: 'one 1' }, ['one']]);

  const removal = await request('one', null);
  await begin(removal);
  expect([await texts(), await entries()]).toEqual([{}, []]);
  await releases.rollBackRelease(AGENT, removal);
  await finish(removal, 'failed');
  expect([await texts(), await entries()]).toEqual([{ one: 'one 1' }, ['one']]);
  expect(await tenant.query('SELECT id FROM agent_skills')).toHaveLength(1);
});

test('a withdrawn request leaves no row', async () => {
  const id = await request('withdrawn', 1);
  expect(await withdrawOperation(tenant, id)).toBe(true);
  expect(await tenant.query('SELECT id FROM agent_skills WHERE id = $id', { id })).toEqual([]);
});

test('the second of two installations that were judged before both fails at the limit', async () => {
  const [second, third] = [await request('two', 1), await request('three', 1)];
  expect(await begin(second)).toBe('begun');
  await finish(second);
  expect(await begin(third)).toBe('withdrawn');
  const row = await tenant.transaction((db) => db.Operation.getByPk(third));
  expect([row.status, row.error]).toEqual(['failed', SKILL_LIMIT_REACHED]);
  expect(await entries()).toEqual(['one', 'two']);
  expect(await tenant.query('SELECT id FROM agent_skills WHERE id = $third', { third })).toEqual(
    [],
  );
});

test('a clone gets the installed skills of its parent, and no more', async () => {
  const open = await request('one', 3);
  const to = { id: 'alice-agent-2', userId: 'alice' };
  await tenant.transaction((db) => copyInstalls(db, { from: AGENT.agentId, to }));
  expect(await installedSkills(tenant, to.id)).toEqual([
    { name: 'one', skillId: null, version: 1 },
    { name: 'two', skillId: null, version: 1 },
  ]);
  expect(await skillTexts(tenant, to.id)).toEqual(await texts());
  await withdrawOperation(tenant, open);
});
