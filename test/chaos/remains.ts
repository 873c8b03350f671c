import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { LABEL } from '../../src/docker/containers/container-spec.js';
import { isPortFree } from '../../dev/ports.js';
import type Docker from 'dockerode';
import type { Site } from './site.js';

const run = promisify(execFile);

/** Returns leftovers of agents after all were removed. */
export async function remainsOf(
  { database, hosts, temporal }: Site,
  ports: { readonly first: number; readonly last: number },
): Promise<string[]> {
  const filters = JSON.stringify({ label: [LABEL.agent] });
  const onHosts = await Promise.all(
    Object.values(hosts).map(async ({ docker }) => ({
      containers: await docker.listContainers({ all: true, filters }),
      networks: await docker.listNetworks({ filters }),
      volumes: (await docker.listVolumes({ filters })).Volumes ?? [], // null if there are none
    })),
  );
  const open = await database.asPlatform().transaction(async (db) => {
    return {
      agents: await db.Agent.count({ where: { deletedAt: null } }),
      operations: await db.Operation.count({ where: { finishedAt: null } }),
    };
  });
  const query = `WorkflowType = "superviseAgent" AND ExecutionStatus = "Running"`;
  const { count: supervisors } = await temporal.workflow.count(query);
  const taken: number[] = [];
  for (let port = ports.first; port <= ports.last; port++) {
    if (!(await isPortFree(port))) taken.push(port);
  }
  const counts = {
    'agents in the database': open.agents,
    'open operations': open.operations,
    supervisors,
  };
  const named = onHosts.flatMap(({ containers, networks, volumes }) => [
    ...containers.map(({ Names, State, Status }) => `container ${Names[0]} (${State}, ${Status})`),
    ...networks.map(({ Name }) => `network ${Name}`),
    ...volumes.map(({ Name }) => `volume ${Name}`),
  ]);
  return [
    ...named.map((each) => `left over: ${each}`),
    ...Object.entries(counts).flatMap(([what, count]) =>
      count === 0 ? [] : [`left over: ${count} ${what}`],
    ),
    ...(await Promise.all(taken.map(holderOf))),
  ];
}

/** Describes in one line the process that uses a port. */
async function holderOf(port: number): Promise<string> {
  const { stdout } = await run('ss', ['-tnpaH', `sport = :${port}`], { timeout: 5_000 });
  return `left over: port ${port} in use by ${stdout.trim() || 'no process that ss lists'}`;
}

/** Removes containers of a failed round, which would keep the engine from stopping. */
export async function removeContainers(docker: Docker): Promise<void> {
  for (const { Id } of await docker.listContainers({ all: true })) {
    await docker.getContainer(Id).remove({ force: true, v: true });
  }
}
