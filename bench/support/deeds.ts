import type Docker from 'dockerode';
import { containerName, LABEL } from '../../src/docker/containers/container-spec.js';

/**
 * Injects a fault into an agent.
 *
 * @returns the time of the fault, in Unix milliseconds.
 */
export type Deed = (docker: Docker, agentId: string) => Promise<number>;

export const killContainer: Deed = async (docker, agentId) => {
  const at = Date.now();
  await docker.getContainer(containerName(agentId)).kill();
  return at;
};

/** Kills the gateway from outside as the kernel would: as root on the engine's machine. */
export const killGateway: Deed = async (docker, agentId) => {
  const listed: { Titles: string[]; Processes: string[][] } = await docker
    .getContainer(containerName(agentId))
    .top();
  const column = (title: string) =>
    listed.Processes.map((cells) => Number(cells[listed.Titles.indexOf(title)]));
  // The first process is the engine's init, and the gateway is its child.
  const [pids, parents] = [column('PID'), column('PPID')];
  const gateway = pids.find((_, index) => pids.includes(parents[index] ?? 0));
  if (gateway === undefined) throw new Error(`Agent ${agentId} has no gateway process to kill`);
  const at = Date.now();
  process.kill(gateway, 'SIGKILL');
  return at;
};

/** Leaves the gateway running but without answers. */
export const hangGateway: Deed = async (docker, agentId) => {
  const { Config: config } = await docker.getContainer(containerName(agentId)).inspect();
  const at = Date.now();
  const answer = await fetch(`http://127.0.0.1:${config.Labels[LABEL.port]}/test`, {
    method: 'POST',
    body: JSON.stringify({ mode: 'hang' }),
    signal: AbortSignal.timeout(10_000),
  });
  await answer.text();
  return at;
};
