import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import type Docker from 'dockerode';
import { LABEL } from '../../src/docker/containers/container-spec.js';
import type { Records } from './verdict.js';

const FILE = 'mark-of-chaos';

/** Writes a mark into the agent's only memory, to be found there later. */
export async function mark(docker: Docker, agentId: string): Promise<void> {
  const [folder, ...more] = await memoriesOf(docker, agentId);
  if (!folder || more.length > 0) throw new Error(`${agentId} does not have exactly one volume`);
  await writeFile(path.join(folder.place, FILE), `${agentId}\n`, { flag: 'a' });
}

/** Returns problems of the mark, which must exist once, in the current or an archived memory. */
export async function problemsOfMark(
  docker: Docker,
  agentId: string,
  { operations }: Pick<Records, 'operations'>,
): Promise<string[]> {
  const memories = await memoriesOf(docker, agentId);
  const marks = await Promise.all(
    memories.map(async ({ name, place }) => {
      const lines = await readFile(path.join(place, FILE), 'utf8').catch(() => ''); // no mark in this volume
      return lines.split('\n').flatMap((line) => (line === agentId ? [name] : []));
    }),
  );
  const found = marks.flat();
  const wasReset = operations.some(
    ({ kind, status }) => kind === 'reset-memory' && status === 'succeeded',
  );
  if (found.length === 1 && (wasReset || memories.length === 1)) return [];
  const names = memories.map(({ name }) => name).join(', ');
  return [`its memory is marked in [${found.join(', ')}] of [${names}]`];
}

/** Returns an agent's volumes and their folders on this machine. */
export async function memoriesOf(docker: Docker, agentId: string) {
  const filters = JSON.stringify({ label: [`${LABEL.agent}=${agentId}`] });
  const { Volumes: volumes } = await docker.listVolumes({ filters });
  return (volumes ?? []).map(({ Name: name, Mountpoint: place }) => ({ name, place })); // null if there are none
}
