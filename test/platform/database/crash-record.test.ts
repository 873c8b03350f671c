import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { recordCrashDetails, type CrashScene } from '../../../src/agents/logs/keep-crash.js';
import { readHistory } from '../../../src/agents/agents/history.js';
import { WatchdogStore } from '../../../src/agents/watchdog/watchdog-store.js';
import type { ContainerState } from '../../../src/docker/containers/container-view.js';
import { testDatabase, type TestDatabase } from '../../support/postgres.js';

const USER = 'operator';
const ENDED: ContainerState = {
  id: 'container',
  status: 'exited',
  image: 'image',
  exitCode: 137,
  oomKilled: true,
  startedAt: undefined,
  finishedAt: undefined,
  health: undefined,
  runtimeVersion: undefined,
  port: undefined,
  volumes: [],
};

let database: TestDatabase;
beforeAll(async () => {
  database = await testDatabase();
});
afterAll(() => database?.close());

/** Returns the record of a crash whose container wrote these lines last. */
async function crashWith(lines: () => Iterable<string>) {
  const id = randomUUID();
  const tenant = database.db.asUser(USER);
  const kind = { plan: 'network', model: 'gpt-4', aiProvider: 'openai' } as const;
  await tenant.transaction((db) =>
    db.Agent.create({ id, userId: USER, name: id, subdomain: id, ...kind }),
  );
  const agent = { agentId: id, userId: USER, host: 'local' };
  const remembered = { version: 1, since: 0, crashes: [0], repairAttempts: 0, lastRepair: null };
  const states = new WatchdogStore(database.db);
  await states.recordTransition(agent, {
    id,
    from: 'running',
    cause: 'oom',
    reason: null,
    memory: { ...remembered, state: 'degraded' },
  });
  const scene: CrashScene = {
    containers: {
      inspect: () => Promise.resolve(ENDED),
      async *logs() {
        await Promise.resolve();
        for (const line of lines()) {
          yield { line, cursor: '1', timestamp: '2026-01-01T00:00:00Z', stream: 'stdout' };
        }
      },
    },
    specs: { secretsToRedact: () => Promise.resolve([]) },
    states,
  };
  const failure = await recordCrashDetails(scene, agent, id).catch((error: unknown) => error);
  const [transition] = (await readHistory(tenant, id, { limit: 1 })).transitions;
  return { failure, crash: transition?.crash };
}

test("a crash is stored with the container's last lines, whatever bytes the lines contain", async () => {
  const half = '😀'.slice(0, 1);
  const { failure, crash } = await crashWith(() => [
    'a NUL: \0.',
    `half of a smile: ${half}.`,
    `x${'😀'.repeat(250)}`, // cut within the last emoji
  ]);
  expect(failure).toBeUndefined();
  expect(crash).toEqual({
    exitCode: 137,
    oomKilled: true,
    lastLines: ['a NUL: \uFFFD.', 'half of a smile: \uFFFD.', `x${'😀'.repeat(249)}`],
  });
});

test('a crash is stored with its exit code even if the log cannot be read', async () => {
  const { failure, crash } = await crashWith(() => {
    throw new Error('the log is unreadable');
  });
  expect(failure).toBeInstanceOf(Error);
  expect(crash).toEqual({ exitCode: 137, oomKilled: true, lastLines: [] });
});
