import type Docker from 'dockerode';
import type { DockerClient } from './docker-client.js';

const MIB = 1024 * 1024;

/** Milliseconds, longer than any throw-away container may live: an older one was left. */
export const LEFTOVER_MS = 30 * 60_000;

/** A program of ours for Node that runs in a container for as long as its work takes. */
export interface ThrowAwayProgram {
  /** Name or id of an image that has Node. */
  readonly image: string;
  readonly script: string;
  /** What the script finds as JSON in its first argument. */
  readonly task: unknown;
  readonly user: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly memoryMiB: number;
  /** What it needs beside: without that it has no rights, and a root that it can only read. */
  readonly needs: Docker.HostConfig;
}

/** Makes the program's container, starts it, and takes it away when `work` is done with it. */
export async function withThrowAway<T>(
  client: DockerClient,
  options: Docker.ContainerCreateOptions,
  work: (container: Docker.Container) => Promise<T>,
): Promise<T> {
  const { id } = await client.call((docker, bound) =>
    docker.createContainer({ ...options, ...bound }),
  );
  const container = client.docker.getContainer(id);
  try {
    await client.call((_, bound) => container.start(bound));
    return await work(container);
  } finally {
    await removeContainer(client, id);
  }
}

/** What Docker is asked to make for a program. It writes to a terminal: else lines come in frames. */
export function throwAwayOptions(program: ThrowAwayProgram): Docker.ContainerCreateOptions {
  const memory = program.memoryMiB * MIB;
  return {
    Image: program.image,
    User: program.user,
    WorkingDir: '/',
    Entrypoint: ['node'],
    Cmd: ['-e', program.script, JSON.stringify(program.task)],
    Tty: true,
    Labels: program.labels,
    HostConfig: {
      ReadonlyRootfs: true,
      CapDrop: ['ALL'],
      SecurityOpt: ['no-new-privileges'],
      Privileged: false,
      PidsLimit: 64,
      Memory: memory,
      MemorySwap: memory,
      LogConfig: { Type: 'json-file', Config: { 'max-size': '1m', 'max-file': '1' } },
      RestartPolicy: { Name: 'no' },
      ...program.needs,
    },
  };
}

/** Which containers: all filters hold, as Docker reads them. */
interface LeftoverFilters {
  /** As `name=value`, or a name alone. */
  readonly label: string[];
  /** That mount one of these. Docker 20.10 finds nothing for an empty list. */
  readonly volume?: string[];
  /** Where not given, also those that run. */
  readonly status?: string[];
}

/**
 * Removes the containers that workers, or an engine, which died over them have left.
 *
 * @param olderThanMs younger ones may be another process's that is at work.
 */
export async function removeLeftovers(
  client: DockerClient,
  filters: LeftoverFilters,
  olderThanMs: number,
): Promise<void> {
  const found = await client.call((docker, bound) =>
    docker.listContainers({ all: true, filters: { ...filters }, ...bound }),
  );
  for (const { Id: id, Created: created } of found) {
    if (Date.now() - created * 1000 >= olderThanMs) await removeContainer(client, id);
  }
}

/** With the volumes that nobody has named; one that is gone, or going, is no error. */
export async function removeContainer(client: DockerClient, id: string): Promise<void> {
  await client.callUnless([404, 409], (docker, bound) =>
    docker.getContainer(id).remove({ force: true, v: true, ...bound }),
  );
}
