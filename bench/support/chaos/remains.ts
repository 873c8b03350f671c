import { LABEL } from '../../../src/containers/agent-container.js';
import { isPortFree } from '../../../scripts/ports.js';
import type { Site } from './site.js';

/** What is left of agents when all of them were removed. */
export async function remainsOf(
  { database, engine, temporal }: Site,
  ports: { readonly first: number; readonly last: number },
): Promise<string[]> {
  const filters = JSON.stringify({ label: [LABEL.agent] });
  const containers = await engine.docker.listContainers({ all: true, filters });
  const networks = await engine.docker.listNetworks({ filters });
  const { Volumes: volumes } = await engine.docker.listVolumes({ filters });
  const open = await database.asPlatform().transaction(async (transaction) => {
    const { Agent, Operation } = database.models;
    return {
      agents: await Agent.count({ where: { deletedAt: null }, transaction }),
      operations: await Operation.count({ where: { finishedAt: null }, transaction }),
    };
  });
  const query = `WorkflowType = "superviseAgent" AND ExecutionStatus = "Running"`;
  const { count: supervisors } = await temporal.workflow.count(query);
  let taken = 0;
  for (let port = ports.first; port <= ports.last; port++) if (!(await isPortFree(port))) taken++;
  const counts = {
    containers: containers.length,
    networks: networks.length,
    volumes: volumes?.length ?? 0, // null where there is none
    'agents in the database': open.agents,
    'open operations': open.operations,
    supervisors,
    'ports in use': taken,
  };
  return Object.entries(counts).flatMap(([what, count]) =>
    count === 0 ? [] : [`left over: ${count} ${what}`],
  );
}
