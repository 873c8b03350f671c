import type Docker from 'dockerode';
import { containerName, LABEL } from '../../src/docker/containers/container-spec.js';

/** Does harm to an agent. @returns when it was done, in Unix milliseconds. */
export type Deed = (docker: Docker, agentId: string) => Promise<number>;

export const killContainer: Deed = async (docker, agentId) => {
  const at = Date.now();
  await docker.getContainer(containerName(agentId)).kill();
  return at;
};

/** From outside, as the system does: on the machine of the engine, and as root. */
export const killGateway: Deed = async (docker, agentId) => {
  const listed: { Titles: string[]; Processes: string[][] } = await docker
    .getContainer(containerName(agentId))
    .top();
  const column = (title: string) =>
    listed.Processes.map((cells) => Number(cells[listed.Titles.indexOf(title)]));
  // The first process is the engine's own init, and the gateway its child.
  const [pids, parents] = [column('PID'), column('PPID')];
  const gateway = pids.find((_, index) => pids.includes(parents[index] ?? 0));
  if (gateway === undefined) throw new Error(`Agent ${agentId} has no gateway to kill`);
  const at = Date.now();
  process.kill(gateway, 'SIGKILL');
  return at;
};

/** The gateway lives on and answers nothing any more. */
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
