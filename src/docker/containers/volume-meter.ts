import { randomUUID } from 'node:crypto';
import { text } from 'node:stream/consumers';
import type Docker from 'dockerode';
import * as z from 'zod';
import { tryParseJson } from '../../lib/json.js';
import { volumeMount } from './container-profile.js';
import { type AgentContainerSpec, LABEL } from './container-spec.js';
import type { DockerClient } from './docker-client.js';
import { LEFTOVER_MS, removeLeftovers, throwAwayOptions, withThrowAway } from './throw-away.js';

export interface VolumeUse {
  /** Bytes of allocated blocks, so holes do not count. */
  readonly bytes: number;
  /** Inodes: files, folders and all other named entries. */
  readonly files: number;
  /** Bytes of contents including holes: the size of a copy. */
  readonly contents: number;
  /** False if counting ended early at a bound; the numbers are then minimums. */
  readonly complete: boolean;
}

export type MeterBounds = Partial<Pick<VolumeUse, 'bytes' | 'files' | 'contents'>>;

type MeasuredVolume = Pick<AgentContainerSpec, 'agentId' | 'userId'> & { readonly volume: string };

/** Milliseconds for measuring a volume, plus those for the measuring container. */
const VOLUME_MS = 60_000;
const CONTAINER_MS = 30_000;

/** Volumes per measuring container: creating it takes longer than measuring a typical volume. */
export const MEASURED_TOGETHER = 16;

/**
 * Counts inodes and blocks, so that a tenant cannot hide usage behind names or modes. A file with several
 * names counts once. Nesting too deep for a path is deliberate and counts as too many files.
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
 * Removes the stopped measuring containers of a volume: if the engine died before the start, such a container
 * would hold the volume forever.
 */
export const removeDeadMeters = (client: DockerClient, volume: string): Promise<void> =>
  removeLeftovers(
    client,
    { label: meterLabel(client), volume: [volume], status: ['created', 'exited', 'dead'] },
    0,
  );

/**
 * Measures volumes in a short-lived container: read-only, without a network, at the lowest CPU and disk
 * priority. Its only privilege is reading every file.
 */
export class VolumeMeter {
  readonly #client: DockerClient;

  constructor(client: DockerClient) {
    this.#client = client;
  }

  /** Measures with any image that has Node; undefined for a volume that could not be measured. */
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

  /** Returns the raw output; dockerode's own method would parse a JSON line as an object. */
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
