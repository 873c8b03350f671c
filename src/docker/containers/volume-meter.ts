import { randomUUID } from 'node:crypto';
import { text } from 'node:stream/consumers';
import type Docker from 'dockerode';
import * as z from 'zod';
import { tryParseJson } from '../../lib/json.js';
import { volumeMount } from './container-profile.js';
import { type AgentContainerSpec, LABEL } from './container-spec.js';
import type { DockerClient } from './docker-client.js';
import { LEFTOVER_MS, removeLeftovers, throwAwayOptions, withThrowAway } from './throw-away.js';

/** What a volume takes of its disk. */
export interface VolumeUse {
  /** Of blocks that are taken, so holes do not count. */
  readonly bytes: number;
  /** Inodes: files, folders and all else that has a name. */
  readonly files: number;
  /** Of contents, holes included: what a copy writes. */
  readonly contents: number;
  /** False where counting ended early, at a bound: then it takes at least so much. */
  readonly complete: boolean;
}

/** Where counting ends. */
export type MeterBounds = Partial<Pick<VolumeUse, 'bytes' | 'files' | 'contents'>>;

type MeasuredVolume = Pick<AgentContainerSpec, 'agentId' | 'userId'> & { readonly volume: string };

/** Milliseconds that are spent on one volume, and beside that on the container that measures. */
const VOLUME_MS = 60_000;
const CONTAINER_MS = 30_000;

/** Volumes that one container measures: making it costs more than to measure a usual one. */
export const MEASURED_TOGETHER = 16;

/**
 * Counts what is there as a tenant cannot hide it: by inodes and blocks, whatever names and modes
 * are. A file with several names counts once. Names are bytes, which need be no text, and a folder is
 * read in pieces, however long it is. What is nested so deep that no path names it counts as too many
 * files: no program comes there by chance.
 */
const SCRIPT = `
const fs = require('fs');
const { bounds, volumeMs, targets } = JSON.parse(process.argv[1]);
for (const target of targets) process.stdout.write(JSON.stringify(measure(target)) + '\\n');

function measure(target) {
  const deadline = Date.now() + volumeMs;
  const use = { bytes: 0, files: 0, contents: 0, complete: true };
  const linked = new Set();
  const folders = [];
  look(target);
  while (folders.length > 0 && goesOn()) {
    const folder = folders.pop();
    const entries = attempt(() => fs.opendirSync(bytesOf(folder), { encoding: 'latin1', bufferSize: 256 }));
    if (!entries) continue;
    for (let looked = 1; ; looked++) {
      const entry = attempt(() => entries.readSync());
      if (!entry) break;
      look(folder + '/' + entry.name);
      if (looked % 256 === 0 && !goesOn()) break;
    }
    entries.closeSync();
  }
  return use;

  function look(path) {
    const stat = attempt(() => fs.lstatSync(bytesOf(path)));
    if (!stat) return;
    if (stat.isDirectory()) folders.push(path);
    else if (stat.nlink > 1) {
      if (linked.has(stat.ino)) return;
      linked.add(stat.ino);
    }
    use.files++;
    use.bytes += stat.blocks * 512;
    if (stat.isFile()) use.contents += stat.size;
  }
  function goesOn() {
    const isEnough = Object.keys(bounds).some((what) => use[what] >= bounds[what]);
    if (isEnough || Date.now() > deadline) use.complete = false;
    return use.complete;
  }
  function attempt(work) {
    try {
      return work();
    } catch (error) {
      if (error.code === 'ENAMETOOLONG') use.files = Math.max(use.files, bounds.files ?? 0);
      else if (error.code !== 'ENOENT' && error.code !== 'ENOTDIR') use.complete = false;
    }
  }
}

function bytesOf(path) {
  return Buffer.from(path, 'latin1');
}
`;

const line = z.object({
  bytes: z.number(),
  files: z.number(),
  contents: z.number(),
  complete: z.boolean(),
});

const meterLabel = ({ installation }: DockerClient): string[] => [
  `${LABEL.installation}=${installation}`,
  LABEL.measures,
];

/**
 * Removes the containers that were to measure a volume and do not run: where the engine died between
 * making one and starting it, it would keep the volume for ever. One that runs ends by itself.
 */
export const removeDeadMeters = (client: DockerClient, volume: string): Promise<void> =>
  removeLeftovers(
    client,
    { label: meterLabel(client), volume: [volume], status: ['created', 'exited', 'dead'] },
    0,
  );

/**
 * Measures volumes by a container that lives for as long as that takes: it sees them read-only, has no
 * network, and comes after all others for processor and disk. It may read what only the owner of a
 * file may, and nothing else that root can.
 */
export class VolumeMeter {
  readonly #client: DockerClient;

  constructor(client: DockerClient) {
    this.#client = client;
  }

  /**
   * @param image any that has Node.
   * @returns in the order of the volumes; undefined for one of which nothing was found out.
   */
  async measure(
    image: string,
    volumes: readonly MeasuredVolume[],
    bounds: MeterBounds,
    signal?: AbortSignal,
  ): Promise<(VolumeUse | undefined)[]> {
    await removeLeftovers(this.#client, { label: meterLabel(this.#client) }, LEFTOVER_MS);
    const options = this.#options(image, volumes, bounds);
    return withThrowAway(this.#client, options, async (container) => {
      const longest = VOLUME_MS * volumes.length + CONTAINER_MS;
      await this.#client.call((_, { abortSignal }) => {
        const either = signal ? AbortSignal.any([signal, abortSignal]) : abortSignal;
        return container.wait({ abortSignal: either });
      }, longest);
      const lines = (await this.#outputOf(container.id)).split(/\r?\n/);
      return volumes.map((_, at) => line.safeParse(tryParseJson(lines[at] ?? '')).data);
    });
  }

  /** As it is: dockerode's own method takes a line of JSON for an object. */
  async #outputOf(id: string): Promise<string> {
    const abort = AbortSignal.timeout(this.#client.timeoutMs);
    const path = `/containers/${id}/logs`;
    return text(await this.#client.openStream(path, { stdout: true }, { signal: abort }));
  }

  #options(
    image: string,
    volumes: readonly MeasuredVolume[],
    bounds: MeterBounds,
  ): Docker.ContainerCreateOptions {
    const mounts = volumes.map((volume, at) => ({
      ...volumeMount(volume, this.#client, {
        volume: volume.volume,
        target: `/measured/${at}`,
        copiesImage: false,
      }),
      ReadOnly: true,
    }));
    const task = { bounds, volumeMs: VOLUME_MS, targets: mounts.map(({ Target }) => Target) };
    const { installation, labels } = this.#client;
    const options = throwAwayOptions({
      image,
      script: SCRIPT,
      task,
      user: '0:0',
      labels: { ...labels, [LABEL.installation]: installation, [LABEL.measures]: 'true' },
      memoryMiB: 512,
      needs: {
        NetworkMode: 'none',
        Mounts: mounts,
        CapAdd: ['DAC_READ_SEARCH'],
        OomScoreAdj: 1000,
        CpuShares: 2,
        CpuPeriod: 100_000,
        CpuQuota: 50_000,
        BlkioWeight: 10,
      },
    });
    return { name: `agent-platform-measure-${randomUUID()}`, ...options };
  }
}
