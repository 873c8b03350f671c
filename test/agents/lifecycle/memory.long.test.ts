import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Reconciliation } from '../../../src/agents/operations/reconcile.js';
import { containerName } from '../../../src/docker/containers/container-spec.js';
import { readMemory, writeMemory } from '../../support/agent-memory.js';
import { until } from '../../support/until.js';
import { testPlatform, type TestPlatform, type TestUser } from '../../support/platform.js';
import { workerLog } from '../../support/temporal.js';

let platform: TestPlatform;
let ada: TestUser;

beforeAll(async () => {
  platform = await testPlatform();
  ada = await platform.signUp('network');
});
afterAll(() => platform?.close());

const act = (id: string, action: string, body?: unknown) =>
  platform.backend(ada, 'POST', `/api/agents/${id}/${action}?wait=60`, {
    ...(body !== undefined && { body }),
  });
const shown = async (id: string) => (await platform.backend(ada, 'GET', `/api/agents/${id}`)).body;
const volumesOf = async (id: string) =>
  (await platform.dockerHost.volumes.list(id)).map(({ name }) => name).sort();

const remember = (id: string, what: string) => writeMemory(platform.docker, id, 'memory', what);
const recall = (id: string) => readMemory(platform.docker, id, 'memory');

/** Stops an agent and removes its container and its volume. */
async function lose(id: string): Promise<void> {
  expect((await act(id, 'stop')).body.status).toBe('succeeded');
  await platform.docker.getContainer(containerName(id)).remove();
  const { volume } = await platform.db.asPlatform().transaction((db) => db.Agent.getByPk(id));
  await platform.docker.getVolume(volume ?? containerName(id)).remove();
}

async function deleteWholly(id: string): Promise<void> {
  await platform.backend(ada, 'DELETE', `/api/agents/${id}`);
  await until(async () => (await platform.resourcesOf(id)).length === 0);
}

describe('a missing memory', () => {
  test('keeps its agent from starting, is reported, and ends with reset-empty', async () => {
    const id = await platform.runningAgent(ada);
    await remember(id, 'all that it knew');
    await lose(id);

    const started = await act(id, 'start');
    expect(started.body).toMatchObject({
      status: 'failed',
      error: expect.stringContaining('its memory is missing'),
    });
    expect(await shown(id)).toMatchObject({
      status: 'error',
      statusReason: expect.stringContaining('its memory is missing'),
      watchdog: { state: 'crash_loop' },
    });
    expect(await volumesOf(id)).toEqual([]);
    for (const kind of ['restart', 'repair', 'reset-memory']) {
      expect((await act(id, kind)).body.error).toContain('its memory is missing');
    }
    expect(await platform.resourcesOf(id)).not.toContain(`volume ${containerName(id)}`);

    const onWeb = await platform.web(ada, 'POST', `/api/agents/${id}/reset-empty?wait=60`);
    expect([onWeb.status, onWeb.body.status]).toEqual([202, 'succeeded']);
    await platform.becomes(id, 'active');
    expect(await recall(id)).toBe('nothing');
    const again = await act(id, 'reset-empty');
    expect(again.body).toMatchObject({ status: 'failed' });
    expect(again.body.error).toContain('has its memory');
    await deleteWholly(id);
  });

  test('an archive replaces a missing memory', async () => {
    const id = await platform.runningAgent(ada);
    await remember(id, 'from the archive');
    expect((await act(id, 'reset-memory')).body.status).toBe('succeeded');
    await lose(id);
    expect((await act(id, 'start')).body.status).toBe('failed');
    const [archive, ...others] = (await platform.web(ada, 'GET', `/api/agents/${id}/archives`)).body
      .archives;
    expect(others).toEqual([]);
    expect((await act(id, 'restore', { archiveId: archive.id })).body.status).toBe('succeeded');
    expect(await recall(id)).toBe('from the archive');
    const after = await platform.web(ada, 'GET', `/api/agents/${id}/archives`);
    expect(after.body.archives).toEqual([archive]);
    await deleteWholly(id);
  });
});

test('a volume made after the restored database backup is never removed', async () => {
  const id = await platform.runningAgent(ada);
  // Simulates a database backup restored after the memory was reset.
  expect((await act(id, 'stop')).body.status).toBe('succeeded');
  expect((await act(id, 'reset-memory')).body.status).toBe('succeeded');
  const [older = '', newer = ''] = await volumesOf(id);
  await platform.asOwner(
    `UPDATE agents SET volume = NULL WHERE id = '${id}';
     DELETE FROM agent_volumes WHERE name = '${newer}';
     DELETE FROM agent_archives WHERE agent_id = '${id}';
     DELETE FROM operations WHERE agent_id = '${id}' AND kind = 'reset-memory'`,
  );
  expect(older).toBe(containerName(id));
  expect((await act(id, 'start')).body.status).toBe('succeeded');
  expect((await act(id, 'reset-memory')).body.status).toBe('succeeded');
  expect(await volumesOf(id)).toContain(newer);

  const reconciliation = new Reconciliation(platform.db, platform.dockerHost);
  expect(await reconciliation.unknownVolumes()).toEqual([newer]);
  await platform.backend(ada, 'DELETE', `/api/agents/${id}`);
  await until(async () => (await volumesOf(id)).join() === newer);
  await until(() => Promise.resolve(workerLog.some((line) => line.includes(newer))));
  await platform.docker.getVolume(newer).remove();
});

test('undoing a failed provisioning keeps a volume that existed before', async () => {
  await platform.stopWorkers();
  const made = await platform.web(ada, 'POST', '/api/agents/provision', { body: { name: 'Back' } });
  const { id } = made.body.agent;
  // After a restore from a backup, a pending agent may have a volume that was created long ago.
  const volume = { agentId: id, userId: ada.id };
  await platform.dockerHost.volumes.ensure(volume, 'a run that is over');
  await platform.asOwner(`UPDATE agents SET image = '127.0.0.1:9/none/such:1' WHERE id = '${id}'`);
  await platform.startWorkers();
  await platform.becomes(id, 'error');
  expect(await volumesOf(id)).toEqual([containerName(id)]);
  await deleteWholly(id);
});
