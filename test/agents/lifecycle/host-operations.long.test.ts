import { ScheduleNotFoundError } from '@temporalio/client';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { reportHost } from '../../../src/agents/hosts/hosts.js';
import { removeSchedules, putSchedules } from '../../../temporal/schedules.js';
import { finishRemovals } from '../../../worker/finish-removals.js';
import { reconcileHostId, superviseAgentId } from '../../../workflows/ids.js';
import { until } from '../../support/until.js';
import type { CallOptions } from '../../support/http.js';
import { testPlatform, type TestPlatform, type TestUser } from '../../support/platform.js';

let platform: TestPlatform;
let ada: TestUser;

beforeAll(async () => {
  platform = await testPlatform({ env: { AGENT_HOST: 'here', AGENT_HOST_CAPACITY: '10' } });
  ada = await platform.signUp('network');
});
afterAll(() => platform?.close());

const operator = (method: string, path: string, options?: CallOptions) =>
  platform.backend(undefined, method, path, options);
const host = async (id: string) =>
  (await operator('GET', '/api/hosts')).body.find((each: { id: string }) => each.id === id);
const create = (name: string) => platform.backend(ada, 'POST', '/api/agents', { body: { name } });
const agent = async (id: string) => (await operator('GET', `/api/agents/${id}`)).body;
const audited = (subject: string) =>
  platform.db
    .asPlatform()
    .query<{ action: string }>(
      'SELECT action FROM audit_log WHERE subject = $subject ORDER BY id',
      {
        subject,
      },
    )
    .then((rows) => rows.map(({ action }) => action));

describe('host operations', () => {
  test('lets only the operator change hosts, and only existing hosts', async () => {
    for (const path of ['cordon', 'uncordon', 'drain']) {
      const asUser = await platform.backend(ada, 'POST', `/api/hosts/here/${path}`);
      expect(asUser.status).toBe(403);
      expect((await operator('POST', `/api/hosts/nowhere/${path}`)).status).toBe(404);
    }
    expect((await platform.backend(ada, 'DELETE', '/api/hosts/here')).status).toBe(403);
    expect((await operator('DELETE', '/api/hosts/nowhere')).status).toBe(404);
  });

  test('places no new agents on a cordoned host until it is uncordoned', async () => {
    for (let n = 0; n < 2; n++) {
      const cordoned = await operator('POST', '/api/hosts/here/cordon');
      expect([cordoned.status, cordoned.body]).toEqual([200, { id: 'here', cordoned: true }]);
    }
    expect(await host('here')).toMatchObject({ status: 'cordoned', cordoned: true });
    expect((await create('kept away')).status).toBe(503);
    const opened = await operator('POST', '/api/hosts/here/uncordon');
    expect(opened.body).toEqual({ id: 'here', cordoned: false });
    expect(await host('here')).toMatchObject({ status: 'ready', cordoned: false });
    expect(await audited('here')).toEqual(['host.cordon', 'host.uncordon']);
  });
});

test('stops the agents of a drained host by operations and keeps their volumes', async () => {
  const id = await platform.runningAgent(ada);
  const first = await operator('POST', '/api/hosts/here/drain');
  expect(first.status).toBe(202);
  expect(first.body).toEqual({
    id: 'here',
    cordoned: true,
    began: [{ agentId: id, operationId: expect.any(String) }],
    refused: [],
    remaining: 0,
  });
  expect(await host('here')).toMatchObject({ status: 'cordoned' });
  await platform.becomes(id, 'stopped');
  const again = await operator('POST', '/api/hosts/here/drain');
  expect(again.body).toMatchObject({ began: [], refused: [], remaining: 0 });
  const { body } = await operator('GET', `/api/agents/${id}/operations`);
  expect(body.operations[0]).toMatchObject({
    id: first.body.began[0].operationId,
    operation: 'stop',
    status: 'succeeded',
  });
  expect(await audited(id)).toEqual(['agent.create', 'agent.stop']);
  expect(await platform.resourcesOf(id)).toContain(`volume agent-${id}`);

  await operator('POST', '/api/hosts/here/uncordon');
  await operator('POST', `/api/agents/${id}/start?wait=60`);
  expect((await agent(id)).status).toBe('active');
});

describe('permanently lost host', () => {
  const silence = () =>
    platform.asOwner(`UPDATE hosts SET seen_at = now() - interval '46 s' WHERE id = 'gone'`);
  let lost: string;
  let leaving: string;

  beforeAll(async () => {
    const ports = { first: 19_100, last: 19_199 };
    const report = { id: 'gone', capacity: 50, ports, engineAvailable: true, engineId: 'E' };
    await reportHost(platform.db, report);
    [lost, leaving] = [(await create('lost')).body.id, (await create('leaving')).body.id];
    expect((await agent(lost)).host).toBe('gone');
    await putSchedules(platform.temporal.client, 'gone');
    await operator('DELETE', `/api/agents/${leaving}`);
    // The supervisor starts the removal a moment after the request is accepted.
    await until(async () => {
      const begun = await platform.db
        .asPlatform()
        .query(`SELECT FROM agents WHERE id = $leaving AND desired = 'deleted'`, { leaving });
      return begun.length > 0;
    });
  });

  test('refuses to remove a host whose worker is reporting', async () => {
    const refused = await operator('DELETE', '/api/hosts/gone?confirm=gone');
    expect(refused.status).toBe(409);
    expect(refused.body.error).toContain('drain the host and stop its worker first');
  });

  test('removes a lost host only with confirmation of the losses', async () => {
    await silence();
    const asked = await operator('DELETE', '/api/hosts/gone');
    expect(asked.status).toBe(409);
    expect(asked.body).toMatchObject({
      error:
        'Removing host gone permanently destroys the memories of 1 agents (repeat with ?confirm=gone to confirm)',
      lost: { agents: 1, archives: 0, operations: 1 },
    });
    expect((await operator('DELETE', '/api/hosts/gone?confirm=here')).status).toBe(409);
    expect((await agent(lost)).status).toBe('pending');
  });

  test('puts the agents of a removed host in error and fails their operations with a reason', async () => {
    const removed = await operator('DELETE', '/api/hosts/gone?confirm=gone');
    expect([removed.status, removed.body]).toEqual([202, { id: 'gone', status: 'removing' }]);
    expect((await operator('DELETE', '/api/hosts/gone')).status).toBe(202);
    const reason = 'Its host gone was removed, and its memory is lost with it';
    expect(await agent(lost)).toMatchObject({ status: 'error', statusReason: reason });
    const { body } = await operator('GET', `/api/agents/${lost}/operations`);
    expect(body.operations).toMatchObject([
      { operation: 'provision', status: 'failed', error: reason },
    ]);
    expect(await audited(lost)).toEqual(['agent.create', 'agent.lost']);
    expect(await audited('gone')).toEqual(['host.remove']);
    const rows = await platform.db.asPlatform().query(
      `SELECT a.deleted_at IS NOT NULL AS deleted, o.status FROM agents a
         JOIN operations o ON o.agent_id = a.id AND o.kind = 'delete' WHERE a.id = $leaving`,
      { leaving },
    );
    expect(rows).toEqual([{ deleted: true, status: 'succeeded' }]);
    expect((await create('elsewhere')).status).toBe(201);
  });

  test('removes the supervisors, schedule and name of a removed host', async () => {
    const { client } = platform.temporal;
    await until(async () => {
      const { status } = await client.workflow.getHandle(superviseAgentId(lost)).describe();
      return status.name === 'RUNNING';
    });
    await finishRemovals({
      database: platform.db,
      supervisors: platform.supervisors,
      removeSchedules: (id) => removeSchedules(client, id),
      log: platform.log,
    });
    for (const id of [lost, leaving]) {
      const { status } = await client.workflow.getHandle(superviseAgentId(id)).describe();
      // The supervisor of a deleted agent may have completed by itself.
      expect(status.name).toMatch(/TERMINATED|COMPLETED/);
    }
    const schedule = client.schedule.getHandle(reconcileHostId('gone')).describe();
    await expect(schedule).rejects.toThrow(ScheduleNotFoundError);
    expect(await host('gone')).toBeUndefined();
  });

  test('allows only removal of a lost agent', async () => {
    const started = await platform.backend(ada, 'POST', `/api/agents/${lost}/start`);
    expect(started.status).toBe(409);
    expect(started.body.error).toContain('its memory is lost: remove the agent');
    const removed = await platform.web(ada, 'DELETE', `/api/agents/${lost}`);
    expect(removed.status).toBeLessThan(300);
    expect((await platform.web(ada, 'GET', `/api/agents/${lost}`)).status).toBe(404);
    const rows = await platform.db
      .asPlatform()
      .query('SELECT deleted_at IS NOT NULL AS gone FROM agents WHERE id = $lost', { lost });
    expect(rows).toEqual([{ gone: true }]);
  });
});
