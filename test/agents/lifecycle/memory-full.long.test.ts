import { afterAll, beforeAll, expect, test } from 'vitest';
import { STATE_DIRECTORY, containerName } from '../../../src/docker/containers/container-spec.js';
import type { DiskLimits } from '../../../src/docker/containers/disk-limits.js';
import { createHostServices } from '../../../src/services.js';
import { measureDue, MeasuringPace } from '../../../worker/measure-memories.js';
import { testPlatform, type TestPlatform, type TestUser } from '../../support/platform.js';
import { runInContainer } from '../../support/run-in-container.js';

const MIB = 1024 ** 2;
const LIMIT = 32 * MIB;

// Tests raise the limit as an operator does, by restarting the worker with a higher one.
const disk: { -readonly [K in keyof DiskLimits]: DiskLimits[K] } = { floor: 0, volume: LIMIT };
let platform: TestPlatform;
let ada: TestUser;

beforeAll(async () => {
  platform = await testPlatform({ disk });
  ada = await platform.signUp('network');
});
afterAll(() => platform?.close());

const act = (id: string, action: string) =>
  platform.backend(ada, 'POST', `/api/agents/${id}/${action}?wait=60`);
const shown = async (id: string) => (await platform.backend(ada, 'GET', `/api/agents/${id}`)).body;

const write = (id: string, file: string, mib: number) =>
  runInContainer(
    platform.docker,
    containerName(id),
    `const fs = require('fs');
     const file = fs.openSync('${STATE_DIRECTORY}/${file}', 'w');
     for (let i = 0; i < ${mib}; i++) fs.writeSync(file, Buffer.alloc(${MIB}, i));`,
  );

/** Measures volumes as the worker does when its interval is over. */
async function measure(): Promise<void> {
  const { db: database, dockerHost: docker, log, settings, supervisors } = platform;
  const { memorySizes } = createHostServices({ settings, database, docker });
  const { host } = settings.agents;
  const parts = { database, supervisors, memorySizes, docker, host, log };
  await measureDue(parts, 0, new AbortController().signal);
}

/** Writes a file through the file explorer. */
const browse = (agentId: string, content: string) =>
  platform.backend(ada, 'POST', '/api/browse/write', {
    body: { agentId, path: 'note.txt', content },
  });

/** Returns the bytes last measured for the agent. */
async function takenBy(agentId: string): Promise<number> {
  const sql = 'SELECT bytes::float8 AS bytes FROM agent_volumes WHERE agent_id = $agentId';
  const [row] = await platform.db.asPlatform().query<{ bytes: number | null }>(sql, { agentId });
  return row?.bytes ?? 0;
}

const notifiedOf = async (agentId: string) =>
  (
    await platform.db.asPlatform().query<{ event: { event: string } }>(
      `SELECT event FROM pending_notifications WHERE agent_id = $agentId
         AND event ->> 'event' LIKE 'memory_%' ORDER BY due_at`,
      { agentId },
    )
  ).map(({ event }) => event);

test(
  'an agent that fills its memory causes a notification, is stopped, and starts after the limit is raised',
  { tags: 'attack' },
  async () => {
    const [greedy, modest] = [
      await platform.runningAgent(ada),
      await platform.runningAgent(ada),
    ] as const;
    // Workers without delivery leave the notifications pending, where the test can read them.
    await platform.stopWorkers();
    await platform.startWorkers({ notifying: false });
    const before = await platform.containers.inspect(modest);

    await measure();
    expect(await notifiedOf(greedy)).toEqual([]);
    await write(greedy, 'some', 27);
    await measure();
    await measure();
    const [filling, ...again] = await notifiedOf(greedy);
    expect(filling).toMatchObject({ event: 'memory_filling', share: expect.closeTo(0.85, 1) });
    expect(again).toEqual([]);
    expect(await shown(greedy)).toMatchObject({ status: 'active' });

    await write(greedy, 'more', 8);
    await measure();
    await platform.becomes(greedy, 'stopped');
    expect(await shown(greedy)).toMatchObject({
      desired: 'stopped',
      statusReason: expect.stringMatching(/memory is full, with \d+ MiB of the 32 MiB/),
      watchdog: { state: 'stopped' },
    });
    expect((await notifiedOf(greedy)).map(({ event }) => event)).toEqual([
      'memory_filling',
      'memory_full',
    ]);
    const { operations } = (await platform.backend(ada, 'GET', `/api/agents/${greedy}/operations`))
      .body;
    expect(operations[0]).toMatchObject({ operation: 'stop', status: 'succeeded' });

    // The owner's start is refused, and so is the watchdog's.
    const refused = await act(greedy, 'start');
    expect(refused.body).toMatchObject({
      status: 'failed',
      error: expect.stringContaining('memory is full'),
    });
    await platform.supervisors.checkNow({
      agentId: greedy,
      userId: ada.id,
      host: platform.settings.agents.host,
      name: 'greedy',
      desired: 'running',
      provisioned: true,
    });
    await measure();
    await platform.becomes(greedy, 'stopped');
    expect((await platform.containers.inspect(greedy))?.status).toBe('exited');
    expect(await browse(greedy, 'one byte more')).toMatchObject({
      status: 409,
      body: { error: expect.stringContaining('memory is full') },
    });
    const after = await platform.containers.inspect(modest);
    expect(after).toMatchObject({ status: 'running', startedAt: before?.startedAt });

    disk.volume = 2 * LIMIT;
    expect((await act(greedy, 'start')).body.status).toBe('succeeded');
    expect(await shown(greedy)).toMatchObject({ status: 'active', statusReason: null });
    disk.volume = LIMIT;
    await measure();
    await platform.becomes(greedy, 'stopped');
    expect((await act(greedy, 'reset-memory')).body.status).toBe('succeeded');
    expect(await shown(greedy)).toMatchObject({ status: 'stopped', statusReason: null });
    expect((await act(greedy, 'start')).body.status).toBe('succeeded');
  },
);

test(
  'measures files written to a stopped agent as those of a running one',
  { tags: 'attack' },
  async () => {
    const agent = await platform.runningAgent(ada);
    expect((await act(agent, 'stop')).body.status).toBe('succeeded');
    await measure();
    const before = await takenBy(agent);
    expect((await browse(agent, 'x'.repeat(MIB / 2))).status).toBe(200);
    await measure();
    expect(await takenBy(agent)).toBeGreaterThanOrEqual(before + MIB / 2);
  },
);

test('measures memories early while the disk is filling up', () => {
  const pace = new MeasuringPace();
  const at = (free: number, low = false) => pace.periodAt({ total: 1_000, free, low });
  expect(at(500)).toBe(600_000);
  expect(at(480)).toBe(600_000);
  expect(at(440)).toBe(20_000);
  expect(at(430)).toBe(600_000);
  expect(at(390)).toBe(20_000);
  expect(at(900)).toBe(600_000);
  expect(at(850, true)).toBe(180_000);
  expect(pace.periodAt(undefined)).toBe(180_000);
});
