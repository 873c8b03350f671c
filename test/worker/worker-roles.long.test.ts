import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { temporal as proto } from '@temporalio/proto';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { startProcess, type ServerProcess } from '../../dev/processes/process.js';
import { builtProgram } from '../../dev/root.js';
import { PLATFORM_TASK_QUEUE, reconcileHostId } from '../../workflows/ids.js';
import { queryRows } from '../platform/database/catalog.js';
import { testEnvironment } from '../support/platform-environment.js';
import { testDatabase, type TestDatabase } from '../support/postgres.js';
import { testTemporal, type TestTemporal } from '../support/temporal.js';

let database: TestDatabase;
let temporal: TestTemporal;
let folder: string;
let worker: ServerProcess | undefined;

beforeAll(async () => {
  database = await testDatabase();
  folder = await mkdtemp(path.join(tmpdir(), 'aps-roles-'));
});
beforeEach(async () => {
  temporal = await testTemporal();
});
afterEach(async () => {
  await worker?.stop(20_000);
  worker = undefined;
  await temporal?.close();
});
afterAll(async () => {
  await database?.close();
  if (folder) await rm(folder, { recursive: true, force: true });
});

/** Starts a worker without Docker, and resolves when it is ready. */
async function startWorker(roles: string): Promise<void> {
  const env = testEnvironment({
    DATABASE_URL: database.url,
    DATA_DIR: folder,
    TEMPORAL_ADDRESS: temporal.address,
    TEMPORAL_NAMESPACE: temporal.namespace,
    DOCKER_HOST: 'unix:///nowhere/docker.sock',
    WORKER_METRICS_LISTEN: '127.0.0.1:1',
    WORKER_ROLES: roles,
  });
  let isReady = false;
  worker = await startProcess({
    name: roles,
    command: process.execPath,
    args: [builtProgram('worker', 'main.js')],
    env: { PATH: process.env.PATH, ...env },
    runDir: folder,
    ipc: true,
    onMessage: () => (isReady = true),
  });
  const { logFile } = worker;
  await expect
    .poll(() => isReady, { timeout: 60_000 })
    .toBe(true)
    .catch(async () => expect(await readFile(logFile, 'utf8')).toBe('the log of a ready worker'));
}

const polls = async () => {
  const { pollers } = await temporal.connection.workflowService.describeTaskQueue({
    namespace: temporal.namespace,
    taskQueue: { name: PLATFORM_TASK_QUEUE },
    taskQueueType: proto.api.enums.v1.TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW,
  });
  return pollers.length > 0;
};

const hasSchedule = (id: string) =>
  temporal.client.schedule
    .getHandle(id)
    .describe()
    .then(
      () => true,
      () => false,
    );

const hosts = () => queryRows(database.ownerUrl, 'SELECT id FROM hosts');

test('a worker only for workflows polls the platform queue and serves no host', async () => {
  await startWorker('workflows');
  await expect.poll(polls, { timeout: 30_000 }).toBe(true);
  await expect.poll(() => hasSchedule('roll-up-usage')).toBe(true);
  expect(await hasSchedule(reconcileHostId('local'))).toBe(false);
  expect(await hosts()).toEqual([]);
});

test('a worker only for its host reports the host and polls no platform queue', async () => {
  await startWorker('host');
  await expect.poll(() => hasSchedule(reconcileHostId('local'))).toBe(true);
  expect(await hosts()).toEqual([{ id: 'local' }]);
  expect(await polls()).toBe(false);
});
