import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import type Docker from 'dockerode';
import { LABEL } from '../../src/docker/containers/container-spec.js';
import type { Records } from './verdict.js';

const FILE = 'mark-of-chaos';

/** Writes into the one memory that an agent has what must be found in it ever after. */
export async function mark(docker: Docker, agentId: string): Promise<void> {
  const [folder, ...more] = await memoriesOf(docker, agentId);
  if (!folder || more.length > 0) throw new Error(`${agentId} has not just one volume`);
  await writeFile(path.join(folder.place, FILE), `${agentId}\n`, { flag: 'a' });
}

/** What became of the mark: it is to be there once, in the memory in use or in an archived one. */
export async function problemsOfMark(
  docker: Docker,
  agentId: string,
  { operations }: Pick<Records, 'operations'>,
): Promise<string[]> {
  const memories = await memoriesOf(docker, agentId);
  const marks = await Promise.all(
    memories.map(async ({ name, place }) => {
      const lines = await readFile(path.join(place, FILE), 'utf8').catch(() => ''); // not in there
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

/** The volumes of an agent, and where they are on this machine. */
export async function memoriesOf(docker: Docker, agentId: string) {
  const filters = JSON.stringify({ label: [`${LABEL.agent}=${agentId}`] });
  const { Volumes: volumes } = await docker.listVolumes({ filters });
  return (volumes ?? []).map(({ Name: name, Mountpoint: place }) => ({ name, place })); // null: none
}
