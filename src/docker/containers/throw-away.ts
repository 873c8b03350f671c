import type Docker from 'dockerode';
import type { DockerClient } from './docker-client.js';

const MIB = 1024 * 1024;

/** Milliseconds, longer than the life of any throw-away container; an older one is a leftover. */
export const LEFTOVER_MS = 30 * 60_000;

/** A Node program of the platform, run in a container that exists only for its duration. */
export interface ThrowAwayProgram {
  /** Name or id of an image with Node. */
  readonly image: string;
  readonly script: string;
  /** Passed to the script as JSON in its first argument. */
  readonly task: unknown;
  readonly user: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly memoryMiB: number;
  /** Additional host configuration; the default has no privileges and a read-only root. */
  readonly needs: Docker.HostConfig;
}

/** Creates and starts the program's container, and removes it after `work`. */
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

/** Returns a program's options. Its output is a terminal, since other output comes in frames. */
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

/** Docker's container filters; all must match. */
interface LeftoverFilters {
  /** Labels as `name=value`, or only a name. */
  readonly label: string[];
  /** Volumes of which one must be mounted. Docker 20.10 finds nothing for an empty list. */
  readonly volume?: string[];
  /** All states, also running, if undefined. */
  readonly status?: string[];
}

/**
 * Removes the containers left by workers, or an engine, that died. A container younger than `olderThanMs` may
 * be in use by another process.
 */
export async function removeLeftovers(
  client: DockerClient,
  filters: LeftoverFilters,
  olderThanMs: number,
): Promise<void> {
  const found = await client.listContainers({ all: true, filters: { ...filters } });
  for (const { Id: id, Created: created } of found) {
    if (Date.now() - created * 1000 >= olderThanMs) await removeContainer(client, id);
  }
}

/** Removes a container and its anonymous volumes; a missing one, or one being removed, is no error. */
export async function removeContainer(client: DockerClient, id: string): Promise<void> {
  await client.callUnless([404, 409], (docker, bound) =>
    docker.getContainer(id).remove({ force: true, v: true, ...bound }),
  );
}
