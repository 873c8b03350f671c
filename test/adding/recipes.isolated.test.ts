import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type * as askedOperation from './support/asked-operation.js';
import { CopiedTree, recipe } from './support/copied-tree.js';
import type * as scheduledPass from './support/scheduled-pass.js';

/** What the schedule's pass does, which its recipe leaves to who writes it. */
const PRUNE_MESSAGES = `
import type { Database } from '../database/database.js';

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

let tree: CopiedTree;
let added: string[];
beforeAll(async () => {
  tree = await CopiedTree.make();
  added = [...(await addPause()), ...(await addPruneMessages())];
});
afterAll(() => tree?.remove());

/** @returns the files that were touched. */
async function addPause(): Promise<string[]> {
  const [rules = '', steps = ''] = await recipe('An operation of an agent');
  const kindsFile = 'src/types/operation-kinds.ts';
  const stepsFile = 'workflows/operation-steps.ts';
  await tree.insert(kindsFile, rules, '}', 'export const OPERATIONS =');
  await tree.insert(stepsFile, steps, '}', 'export const OPERATION_STEPS');
  return [kindsFile, stepsFile];
}

/** @returns the files that were touched. */
async function addPruneMessages(): Promise<string[]> {
  const [activity = '', workflow = '', row = ''] = await recipe('A workflow on a schedule');
  await tree.write('src/chat/prune-messages.ts', PRUNE_MESSAGES);
  const activities = 'activities/housekeeping.ts';
  await tree.insert(
    activities,
    "import { pruneMessages } from '../src/chat/prune-messages.js';",
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

/** What a file of the tests does where it imports what was added. */
const inTree = async <Module>(file: string): Promise<Module> =>
  // The file is that of the type argument, in another folder.
  (await import(path.join(tree.folder, 'test/adding/support', file))) as Module;

test('what else would have to be touched, the compiler would miss', async () => {
  const importers = await tree.importersOf('operation-kinds', ['src', 'api', 'temporal']);
  expect(await tree.compile([...added, ...importers])).toBe('');
});

test('an operation that was added to two files can be asked for', async () => {
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

test('a workflow that was added to four files is run by its schedule', async () => {
  const { messagesLeft } = await inTree<typeof scheduledPass>('scheduled-pass.ts');
  expect(await messagesLeft([100, 91, 89, 0])).toEqual(['89 days old', '0 days old']);
});
