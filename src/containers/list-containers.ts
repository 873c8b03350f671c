import type Docker from 'dockerode';
import { containerName, type ContainerSummary, LABEL } from './container-spec.js';
import { containerSummary } from './container-view.js';
import { callDocker } from './docker-client.js';

/** The container of every agent of an installation; none of those kept beside it. */
export async function listContainers(
  docker: Docker,
  installation: string,
  timeoutMs: number,
): Promise<ContainerSummary[]> {
  const filters = { label: [`${LABEL.installation}=${installation}`] };
  const containers = await callDocker(timeoutMs, (abortSignal) =>
    docker.listContainers({ all: true, filters, abortSignal }),
  );
  return containers.filter(isAgents).map(containerSummary);
}

/** Ids of the agents whose container runs. */
export async function runningAgents(
  docker: Docker,
  installation: string,
  timeoutMs: number,
): Promise<ReadonlySet<string>> {
  const filters = { label: [`${LABEL.installation}=${installation}`], status: ['running'] };
  const containers = await callDocker(timeoutMs, (abortSignal) =>
    docker.listContainers({ filters, abortSignal }),
  );
  return new Set(
    containers.filter(isAgents).map(({ Labels: labels }) => labels[LABEL.agent] ?? ''),
  );
}

/** Whether it is an agent's own, by its name. */
function isAgents({ Labels: labels, Names: names }: Docker.ContainerInfo): boolean {
  return names.includes(`/${containerName(labels[LABEL.agent] ?? '')}`);
}
