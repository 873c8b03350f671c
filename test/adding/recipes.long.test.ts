import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type * as askedOperation from './support/asked-operation.js';
import type * as askedRead from './support/asked-read.js';
import { CopiedTree, recipe } from './support/copied-tree.js';
import type * as declared from './support/declared-endpoints.js';
import type * as scheduledPass from './support/scheduled-pass.js';

/** The scheduled job's function, which the recipe leaves to the reader. */
const PRUNE_MESSAGES = `
import type { Database } from '../../platform/database/database.js';

/** @returns how many messages were removed. */
export async function pruneMessages(database: Database): Promise<number> {
  const removed = await database
    .asPlatform()
    .query(\`DELETE FROM messages WHERE created_at < now() - interval '90 days' RETURNING id\`);
  return removed.length;
}
`;

const WORKFLOW_IMPORTS = `
import type { HousekeepingActivities } from '../activities/housekeeping.js';
import { proxyRecords } from './records.js';
`;

const ISOLATION = 'test/agents/lifecycle/isolation.docker.test.ts';

let tree: CopiedTree;
let added: string[];
beforeAll(async () => {
  tree = await CopiedTree.make();
  added = [...(await addUptime()), ...(await addPause()), ...(await addPruneMessages())];
});
afterAll(() => tree?.remove());

/**
 * Adds the recipe's operation to the copy.
 *
 * @returns the changed files.
 */
async function addUptime(): Promise<string[]> {
  const [declaration = '', handled = '', row = ''] = await recipe('An endpoint');
  const contract = 'api/backend/contract.ts';
  const reads = 'api/backend/agent-reads.ts';
  await tree.insert(contract, declaration, 'export const setHeartbeat');
  await tree.insert(reads, "import { agentUptime } from './contract.js';", 'import');
  await tree.insert(reads, handled, '];', 'export const AGENT_READS');
  await addVisits(row);
  return [contract, reads];
}

/** Adds a row of the test of isolation to the tables of both listeners. */
async function addVisits(row: string): Promise<void> {
  for (const table of ['const WEB:', 'const BACKEND:']) {
    await tree.insert(ISOLATION, row, '};', table);
  }
}

/**
 * Adds the recipe's scheduled workflow to the copy.
 *
 * @returns the changed files.
 */
async function addPause(): Promise<string[]> {
  const [rules = '', steps = '', row = ''] = await recipe('An operation of an agent');
  const kindsFile = 'src/types/operation-kinds.ts';
  const stepsFile = 'workflows/operation-steps.ts';
  await tree.insert(kindsFile, rules, '}', 'export const OPERATIONS =');
  await tree.insert(stepsFile, steps, '}', 'export const OPERATION_STEPS');
  await addVisits(row);
  return [kindsFile, stepsFile];
}

/**
 * Adds the recipe's operation to the copy.
 *
 * @returns the changed files.
 */
async function addPruneMessages(): Promise<string[]> {
  const [activity = '', workflow = '', row = ''] = await recipe('A workflow on a schedule');
  await tree.write('src/agents/chat/prune-messages.ts', PRUNE_MESSAGES);
  const activities = 'activities/housekeeping.ts';
  await tree.insert(
    activities,
    "import { pruneMessages } from '../src/agents/chat/prune-messages.js';",
    'import',
  );
  await tree.insert(activities, activity, '  }', 'export function createHousekeepingActivities');
  await tree.write('workflows/prune-messages.ts', `${WORKFLOW_IMPORTS}${workflow}`);
  const index = 'workflows/index.ts';
  await tree.insert(index, "export { pruneMessages } from './prune-messages.js';", 'export');
  const schedules = 'temporal/schedules.ts';
  await tree.insert(schedules, row, '];', 'const schedulesOf');
  return [activities, index, schedules];
}

/** Imports a test file from the copy that holds the added code. */
const inTree = async <Module>(file: string): Promise<Module> =>
  // The same file as that of the type argument, in the copy.
  (await import(path.join(tree.folder, 'test/adding/support', file))) as Module;

test('the copy with the added code compiles without further changes', async () => {
  const importers = await tree.importersOf('operation-kinds', ['src', 'api', 'temporal']);
  expect(await tree.compile([...added, ...importers])).toBe('');
});

test('an endpoint that was added to two files answers owners alone, on both listeners', async () => {
  const { askBoth } = await inTree<typeof askedRead>('asked-read.ts');
  const answers = { nobody: 401, bob: 404, ada: { id: 'agent-of-ada', startedAt: null } };
  expect(await askBoth('uptime')).toEqual({ web: answers, backend: answers });
});

test('the test of isolation has a row for every endpoint once both recipes are followed', async () => {
  const { declaredEndpoints } = await inTree<typeof declared>('declared-endpoints.ts');
  const names = await declaredEndpoints();
  expect(names.WEB).toContain('GET /api/agents/:id/uptime');
  const text = await readFile(path.join(tree.folder, ISOLATION), 'utf8');
  const [shared = ''] = /^function browsing.*?^\}/ms.exec(text) ?? [];
  const withoutRow = (table: keyof typeof names) => {
    const [rows = ''] = new RegExp(`^const ${table}:.*?^\\};`, 'ms').exec(text) ?? [];
    return names[table].filter((name) => !`${rows}${shared}`.includes(`'${name}':`));
  };
  expect([withoutRow('WEB'), withoutRow('BACKEND')]).toEqual([[], []]);
});

test('an operation added in two files can be requested', async () => {
  const { askFor } = await inTree<typeof askedOperation>('asked-operation.ts');
  expect(await askFor('pause')).toEqual({
    status: 202,
    ended: 'succeeded',
    phase: 'pausing',
    containerSteps: ['stopContainer'],
    desired: 'stopped',
    history: ['pause'],
  });
});

test('a workflow added in four files is run by its schedule', async () => {
  const { messagesLeft } = await inTree<typeof scheduledPass>('scheduled-pass.ts');
  expect(await messagesLeft([100, 91, 89, 0])).toEqual(['89 days old', '0 days old']);
});
