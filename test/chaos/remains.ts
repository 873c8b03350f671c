import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { LABEL } from '../../src/containers/container-spec.js';
import { isPortFree } from '../../dev/ports.js';
import type { Site } from './site.js';

const run = promisify(execFile);

/** What is left of agents when all of them were removed. */
export async function remainsOf(
  { database, engine, temporal }: Site,
  ports: { readonly first: number; readonly last: number },
): Promise<string[]> {
  const filters = JSON.stringify({ label: [LABEL.agent] });
  const containers = await engine.docker.listContainers({ all: true, filters });
  const networks = await engine.docker.listNetworks({ filters });
  const { Volumes: volumes } = await engine.docker.listVolumes({ filters });
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
    containers: containers.length,
    networks: networks.length,
    volumes: volumes?.length ?? 0, // null where there is none
    'agents in the database': open.agents,
    'open operations': open.operations,
    supervisors,
  };
  return [
    ...Object.entries(counts).flatMap(([what, count]) =>
      count === 0 ? [] : [`left over: ${count} ${what}`],
    ),
    ...(await Promise.all(taken.map(holderOf))),
  ];
}

/** Who has the port, and what stands on it: one line for the report. */
async function holderOf(port: number): Promise<string> {
  const { stdout } = await run('ss', ['-tnpaH', `sport = :${port}`], { timeout: 5_000 });
  return `left over: port ${port} in use by ${stdout.trim() || 'nobody that ss knows'}`;
}
