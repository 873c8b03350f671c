import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Reconciliation } from '../../../src/agents/operations/reconcile.js';
import { supervisedOf } from '../../../src/agents/operations/supervisors.js';
import { containerName, LABEL } from '../../../src/docker/containers/container-spec.js';
import { putSchedules } from '../../../temporal/schedules.js';
import { reconcileHostId } from '../../../workflows/ids.js';
import type { HostReconciled } from '../../../workflows/reconcile-host.js';
import { freePort } from '../../../dev/ports.js';
import { freeSubnet } from '../../support/docker.js';
import { until } from '../../support/until.js';
import { testPlatform, type TestPlatform, type TestUser } from '../../support/platform.js';
import { endedBySignal } from '../../support/signals.js';
import { workerLog } from '../../support/temporal.js';

let on: TestPlatform;
let user: TestUser;

beforeAll(async () => {
  on = await testPlatform();
  user = await on.signUp('network');
});
afterAll(() => on?.close());

/** Creates an agent's network, volume and container without a workflow. */
async function leave(agentId: string): Promise<void> {
  const place = { port: await freePort(), subnet: freeSubnet(), env: {}, secrets: {}, files: {} };
  const spec = { agentId, userId: user.id, image: on.settings.agents.runtimeImage ?? '', ...place };
  await on.dockerHost.networks.ensure(spec);
  await on.dockerHost.volumes.ensure(spec, 'test');
  await on.containers.ensure(spec);
}

async function removedAgent(): Promise<string> {
  const id = await on.runningAgent(user);
  await on.web(user, 'DELETE', `/api/agents/${id}`);
  await until(async () => (await on.resourcesOf(id)).length === 0);
  await until(
    () =>
      on.db
        .asPlatform()
        .transaction(async (db) => Boolean((await db.Agent.findByPk(id))?.deletedAt)),
    60_000,
  );
  return id;
}

test('finds and completes the rollback of a failed provisioning', async () => {
  const { host } = on.settings.agents;
  const id = randomUUID();
  const row = { id, userId: user.id, name: id, subdomain: id, host, status: 'error' } as const;
  const port = await freePort();
  const kind = { plan: 'network', model: 'provider/model', aiProvider: 'provider' } as const;
  await on.db
    .asUser(user.id)
    .transaction((db) => db.Agent.create({ ...row, ...kind, port, desired: 'running' }));
  await leave(id);
  const reconciliation = new Reconciliation(on.db, on.dockerHost);
  const found = async () => {
    for await (const agents of reconciliation.drifted(host)) {
      for (const agent of agents) if (agent.id === id) return agent;
    }
    return undefined;
  };
  const agent = await found();
  if (!agent) throw new Error('the agent was not found');
  await on.supervisors.checkNow(supervisedOf(agent));

  await until(async () => (await found()) === undefined);
  const left = await on.db.asPlatform().transaction((db) => db.Agent.findByPk(id));
  expect(left).toMatchObject({ port: null, deletedAt: null });
  // The volume stays for the next attempt, as it may hold the agent's memory.
  expect(await on.dockerHost.owners()).toContain(id);
  await on.docker.getVolume(containerName(id)).remove();
  expect((await on.backend(user, 'DELETE', `/api/agents/${id}`)).status).toBe(200);
});

test('finds agents that are not in their desired state and notifies their supervisors', async () => {
  const { host: agentHost } = on.settings.agents;
  const [fine, down, gone, looping, drifted, unreported, stopped] = await Promise.all(
    Array.from({ length: 7 }, () => on.runningAgent(user)),
  );
  for (const id of [drifted, unreported, stopped]) {
    const { body } = await on.backend(user, 'POST', `/api/agents/${id}/stop?wait=30`);
    expect(body.status).toBe('succeeded');
  }
  await on.stopWorkers();
  try {
    await on.docker.getContainer(containerName(drifted ?? '')).start();
    await on.docker.getContainer(containerName(down ?? '')).kill();
    await on.docker.getContainer(containerName(looping ?? '')).kill();
    await on.containers.remove(gone ?? '');
    await on.asOwner(
      `UPDATE agents SET watchdog = '{"state": "crash_loop"}' WHERE id = '${looping}'`,
    );
    // The state after a stop whose supervisor was terminated before it stored the result.
    await on.asOwner(
      `UPDATE agents SET status = 'error', watchdog = watchdog || '{"state": "degraded"}'
        WHERE id = '${unreported}'`,
    );
    const found: string[] = [];
    const reconciliation = new Reconciliation(on.db, on.dockerHost);
    for await (const agents of reconciliation.drifted(agentHost)) {
      found.push(...agents.map(({ id }) => id));
    }
    expect(found.sort()).toEqual([down, gone, drifted, unreported].sort());
    for (const id of [fine, stopped]) expect(found).not.toContain(id);
    for await (const agents of reconciliation.drifted('another-host')) expect(agents).toEqual([]);
  } finally {
    await on.startWorkers();
  }
  // A container that should not run is left to its agent's supervisor.
  await putSchedules(on.temporal.client, agentHost);
  const reported = () => endedBySignal(on.temporal.client, drifted ?? '', 'checkNow');
  await until(async () => (await reported()).length > 0);
  await until(
    async () =>
      (await on.backend(user, 'GET', `/api/agents/${unreported}`)).body.status === 'stopped',
  );
  await on.temporal.client.schedule.getHandle(reconcileHostId(agentHost)).delete();
});

test('removes leftovers of removed agents in the second pass, and nothing else', async () => {
  const { client } = on.temporal;
  const { host: agentHost } = on.settings.agents;
  const [removed, unknown, running] = [
    await removedAgent(),
    randomUUID(),
    await on.runningAgent(user),
  ];
  await leave(removed);
  await leave(unknown);
  // A volume of a known operation, and one of an operation missing in the database.
  await on.asOwner(
    `INSERT INTO agent_volumes (name, agent_id, user_id, made_by, created_at)
     VALUES ('agent-${removed}', '${removed}', '${user.id}', 'test', now())`,
  );
  const newer = { agentId: removed, userId: user.id, volume: `agent-${removed}-newer` };
  await on.dockerHost.volumes.make(newer, 'an operation that is not known');
  const foreign = await on.docker.createVolume({
    Name: `foreign-${removed}`,
    Labels: { [LABEL.agent]: removed, [LABEL.installation]: 'another' },
  });
  try {
    const handle = client.schedule.getHandle(reconcileHostId(agentHost));
    const results = async () => {
      const { info } = await handle.describe();
      const runs = info.recentActions.map(({ action }) => action.workflow.workflowId);
      return Promise.all(
        runs.map(async (id): Promise<HostReconciled> => client.workflow.getHandle(id).result()),
      );
    };
    const passes = (count: number) =>
      until(async () => {
        const all = await results();
        return all.length >= count && all;
      });

    await putSchedules(client, agentHost);
    const [first] = await passes(1);
    expect(first?.orphans).toContain(removed);
    expect(await on.resourcesOf(removed)).toHaveLength(4);

    // The next worker puts the same schedule again, which starts a pass at once.
    await putSchedules(client, agentHost);
    await passes(2);
    expect(await on.resourcesOf(removed)).toEqual([`volume ${newer.volume}`]);
    expect(await foreign.inspect()).toMatchObject({ Name: `foreign-${removed}` });
    expect(await on.resourcesOf(unknown)).toHaveLength(3);
    expect(await on.resourcesOf(running)).toHaveLength(3);
    const warnings = workerLog.filter((line) => line.includes(unknown));
    expect(warnings[0]).toContain('unknown agents');
    const volumes = workerLog.filter((line) => line.includes(newer.volume));
    expect(volumes[0]).toContain('unknown volumes are kept');

    await handle.trigger();
    expect((await passes(3)).at(-1)?.orphans).toEqual([removed]);
    const schedules = [];
    for await (const each of client.schedule.list()) schedules.push(each.scheduleId);
    expect(schedules.filter((id) => id === reconcileHostId(agentHost))).toHaveLength(1);
  } finally {
    await foreign.remove();
  }
});

test('removes nothing of an existing agent or one whose removal is in progress', async () => {
  const reconciliation = new Reconciliation(on.db, on.dockerHost);
  const there = await on.runningAgent(user);
  expect(await reconciliation.removeLeftOver(there)).toBe(false);
  expect(await on.resourcesOf(there)).toHaveLength(3);

  const removed = await removedAgent();
  await leave(removed);
  await on.asOwner(
    `INSERT INTO operations (id, agent_id, user_id, kind)
     VALUES ('${randomUUID()}', '${removed}', '${user.id}', 'delete')`,
  );
  expect((await reconciliation.orphans()).removed).not.toContain(removed);
  expect(await reconciliation.removeLeftOver(removed)).toBe(false);
  await on.asOwner(
    `UPDATE operations SET status = 'succeeded', finished_at = now() WHERE agent_id = '${removed}'`,
  );
  expect(await reconciliation.removeLeftOver(removed)).toBe(true);
  expect(await on.resourcesOf(removed)).toEqual([`volume ${containerName(removed)}`]);
  await on.docker.getVolume(containerName(removed)).remove();
});
