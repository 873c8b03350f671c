import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readAgentTokens } from '../../../src/agents/credentials/agent-secrets.js';
import { supervisedOf } from '../../../src/agents/operations/supervisors.js';
import { containerName } from '../../../src/docker/containers/container-spec.js';
import { putSchedules } from '../../../temporal/schedules.js';
import { reconcileHostId } from '../../../workflows/ids.js';
import {
  BOT_TOKEN,
  CHAT_ID,
  startChannelStubs,
  type ChannelStubs,
} from '../../notifications/channel-stub.js';
import { until } from '../../support/until.js';
import { testPlatform, type TestPlatform, type TestUser } from '../../support/platform.js';
import { firstCheckIsMade, phaseBecomes, shownBy, type Shown } from '../../support/watchdog.js';

let stubs: ChannelStubs;
let on: TestPlatform;
let user: TestUser;
let shown: Shown;

beforeAll(async () => {
  stubs = await startChannelStubs();
  on = await testPlatform({
    env: {
      // No check runs during the test: only Docker's event can reveal that a container ended.
      WATCHDOG_CHECK_INTERVAL: '10m',
      TELEGRAM_BOT_TOKEN: BOT_TOKEN,
      TELEGRAM_ADMIN_CHAT_ID: CHAT_ID,
      TELEGRAM_API_URL: stubs.telegramUrl,
    },
  });
  user = await on.signUp('network');
  shown = shownBy(on, user);
});
afterAll(async () => {
  await on?.close();
  await stubs?.close();
});

const containerOf = (id: string) => on.docker.getContainer(containerName(id));

/** Allocates more memory than the container may use, in one request. */
async function runOutOfMemory(id: string): Promise<void> {
  const MIB = 1024 * 1024;
  await containerOf(id).update({ Memory: 80 * MIB, MemorySwap: 80 * MIB });
  const { port } = (await on.containers.inspect(id)) ?? {};
  await fetch(`http://127.0.0.1:${port}/test`, {
    method: 'POST',
    body: ReadableStream.from(Array.from({ length: 120 }, () => Buffer.alloc(MIB, ' '))),
    duplex: 'half',
    signal: AbortSignal.timeout(20_000),
  }).then(
    () => Promise.reject(new Error('the gateway answered although its memory should be exhausted')),
    () => undefined, // the exit also ends the connection
  );
}

const DEATHS = [
  {
    death: 'is killed from outside',
    bring: (id: string) => containerOf(id).kill(),
    cause: 'kill',
    reason: 'The container ended with exit code 137',
    crash: { exitCode: 137, oomKilled: false },
  },
  {
    death: 'exits by itself',
    bring: (id: string) => on.orderAgent(id, { exit: 3 }),
    cause: 'exit',
    reason: 'The container ended with exit code 3',
    crash: { exitCode: 3, oomKilled: false },
  },
  {
    death: 'is stopped from outside',
    bring: (id: string) => containerOf(id).stop(),
    cause: 'stop',
    reason: 'The container ended with exit code 0',
    crash: { exitCode: 0, oomKilled: false },
  },
  {
    death: 'runs out of memory',
    bring: runOutOfMemory,
    cause: 'oom',
    reason: 'The container ran out of memory',
    crash: { exitCode: 137, oomKilled: true },
  },
] as const;

describe.concurrent('a supervised container', () => {
  test('a container killed three times in the window stays stopped until an operator repairs it', async () => {
    const name = `looping ${randomUUID().slice(0, 8)}`;
    const id = await on.runningAgent(user, { name });
    for (let kill = 1; kill <= 3; kill++) {
      // A kill during a check would first be observed as degraded.
      await firstCheckIsMade(on, id);
      await containerOf(id).kill();
      if (kill === 3) break;
      // Skips the repair's back-off without resetting the crashes.
      await shown.becomes(id, 'repairing');
      await on.supervisors.dockerReturned(await supervised(id), { awayFrom: Date.now() });
      await shown.becomes(id, 'running');
    }
    await shown.becomes(id, 'crash_loop');
    expect((await on.web(user, 'GET', `/api/agents/${id}`)).body.agent).toMatchObject({
      status: 'error',
      desired: 'running',
      watchdog: { state: 'crash_loop', crashesInWindow: 3 },
    });
    await phaseBecomes(on, id, 'crash_loop');

    const reported = await until(() =>
      Promise.resolve(
        stubs.telegram.received.find(
          ({ body }) => body.text.includes(name) && body.text.includes('crash loop'),
        ),
      ),
    );
    expect(reported).toEqual({
      method: 'POST',
      url: `/bot${BOT_TOKEN}/sendMessage`,
      contentType: 'application/json',
      body: expect.objectContaining({
        chat_id: CHAT_ID,
        text: expect.stringContaining('after 3 crashes'),
      }),
    });

    // Neither a check nor Docker's return restarts it; only an operator does.
    await on.supervisors.checkNow(await supervised(id));
    await on.supervisors.dockerReturned(await supervised(id), { awayFrom: Date.now() });
    const repair = await on.backend(user, 'POST', `/api/agents/${id}/repair?wait=60`);
    expect(repair.body).toMatchObject({ operation: 'repair', status: 'succeeded', error: null });
    expect((await shown.life(id)).slice(-4)).toEqual([
      ['running', 'degraded', 'kill'],
      ['degraded', 'crash_loop', 'kill'],
      ['crash_loop', 'repairing', 'operation'],
      ['repairing', 'running', 'repaired'],
    ]);
    expect((await on.backend(user, 'GET', `/api/agents/${id}`)).body).toMatchObject({
      status: 'active',
      watchdog: { state: 'running', crashesInWindow: 0, repairAttempts: 1 },
    });
    const { port } = (await on.containers.inspect(id)) ?? {};
    expect((await fetch(`http://127.0.0.1:${port}/healthz`)).status).toBe(200);
  });

  test('reconciliation stops a container that runs although its agent should be stopped', async () => {
    const id = await on.runningAgent(user);
    await on.backend(user, 'POST', `/api/agents/${id}/stop?wait=60`);
    await containerOf(id).start();
    await putSchedules(on.temporal.client, on.settings.agents.host);
    await until(async () => (await on.containers.inspect(id))?.status === 'exited');
    await on.temporal.client.schedule.getHandle(reconcileHostId(on.settings.agents.host)).delete();
    expect((await on.backend(user, 'GET', `/api/agents/${id}`)).body).toMatchObject({
      status: 'stopped',
      watchdog: { state: 'stopped', crashesInWindow: 0 },
    });
  });

  test('a container that an operation ends does not count as crashed', async () => {
    const id = await on.runningAgent(user);
    for (const action of ['restart', 'stop', 'start', 'update', 'reset-memory', 'stop']) {
      const done = await on.backend(user, 'POST', `/api/agents/${id}/${action}?wait=60`);
      expect([action, done.body.status]).toEqual([action, 'succeeded']);
    }
    const { watchdog } = (await on.backend(user, 'GET', `/api/agents/${id}`)).body;
    expect(watchdog).toMatchObject({ state: 'stopped', crashesInWindow: 0, repairAttempts: 0 });
    await on.backend(user, 'POST', `/api/agents/${id}/start?wait=60`);
    await on.backend(user, 'DELETE', `/api/agents/${id}`);
    await until(async () => (await on.resourcesOf(id)).length === 0);
    const changes = await on.db.asPlatform().transaction((db) =>
      db.WatchdogTransition.findAll({
        where: { agentId: id },
      }),
    );
    expect(changes.map(({ cause }) => cause).filter((cause) => !INTENDED.has(cause))).toEqual([]);
    expect(changes.map(({ toState }) => toState)).not.toContain('degraded');
  });

  test.each(DEATHS.map((each) => [each.death, each] as const))(
    'a container that %s counts as crashed and is repaired automatically',
    async (_, each) => {
      const id = await on.runningAgent(user);
      const secrets = await readAgentTokens(on.db.asPlatform(), on.secrets, id);
      expect(secrets).toHaveLength(2);
      await on.orderAgent(id, { print: { lines: 1, text: `mine: ${secrets.join(', ')}.` } });

      await firstCheckIsMade(on, id);
      const before = Date.now();
      await each.bring(id);
      // The crash is recorded at once; its last log lines are added later.
      const crash = await shown.change(id, ({ crash }) => (crash?.lastLines.length ?? 0) > 0);
      expect(crash).toMatchObject({
        from: 'running',
        to: 'degraded',
        cause: each.cause,
        reason: each.reason,
        crash: each.crash,
      });
      expect(Date.parse(crash.at)).toBeGreaterThanOrEqual(before);
      expect(crash.crash?.lastLines).toContainEqual(expect.stringMatching(/^mine: .*, .*\. 1$/));

      await shown.becomes(id, 'repairing');
      expect((await on.web(user, 'GET', `/api/agents/${id}`)).body.agent).toMatchObject({
        status: 'error',
        watchdog: { state: 'repairing', crashesInWindow: 1 },
      });
      await phaseBecomes(on, id, 'repairing');

      await shown.becomes(id, 'running');
      expect(await shown.life(id)).toEqual([
        ['running', 'degraded', each.cause],
        ['degraded', 'repairing', each.cause],
        ['repairing', 'running', 'repaired'],
      ]);
      const { body, text } = await on.backend(user, 'GET', `/api/agents/${id}`);
      expect(body).toMatchObject({
        status: 'active',
        watchdog: {
          state: 'running',
          since: expect.any(String),
          crashesInWindow: 1,
          repairAttempts: 1,
          lastRepair: expect.any(String),
        },
      });
      expect(Date.parse(body.watchdog.since)).toBeGreaterThan(Date.parse(crash.at));
      await phaseBecomes(on, id, 'running');
      const operations = await on.backend(user, 'GET', `/api/agents/${id}/operations`);
      for (const secret of secrets) {
        for (const answer of [text, operations.text]) expect(answer).not.toContain(secret);
      }
      // The watchdog's repair is not an operation requested by a user.
      expect(
        operations.body.operations.map(({ operation }: { operation: string }) => operation),
      ).toEqual(['provision']);
    },
  );
});

/** Causes of intended transitions. */
const INTENDED: ReadonlySet<string> = new Set(['operation', 'healthy']);

async function supervised(agentId: string) {
  const agent = await on.db.asPlatform().transaction((db) => db.Agent.getByPk(agentId));
  return supervisedOf(agent);
}
