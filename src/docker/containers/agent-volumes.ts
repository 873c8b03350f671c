import { randomUUID } from 'node:crypto';
import type Docker from 'dockerode';
import {
  ForeignContainerError,
  MemoryMissingError,
  VolumeMissingError,
  VolumeTakenError,
  VolumeTooLargeError,
} from './container-errors.js';
import { isOurs, ownershipLabels, volumeMount } from './container-profile.js';
import {
  type AgentContainerSpec,
  containerName,
  LABEL,
  MADE_BY_DOCKER,
  spareNames,
  volumeName,
} from './container-spec.js';
import { readEngine } from './docker-engine.js';
import type { DockerDisk } from './docker-disk.js';
import type { DockerClient } from './docker-client.js';
import type { NamedContainers } from './named-containers.js';
import { COPIED, copyThrough } from './volume-copy.js';
import { removeHelpersOf } from './helper-leftovers.js';
import { removeDeadMeters, VolumeMeter, type MeterBounds, type VolumeUse } from './volume-meter.js';

/** Which volume holds an agent's state. */
export type MemorySpec = Pick<AgentContainerSpec, 'agentId' | 'volume'>;

/** One that is to be measured, by its name. */
export type MeasuredSpec = Pick<AgentContainerSpec, 'agentId' | 'userId'> & {
  readonly volume: string;
};

/** One that is to be copied. */
export type CopiedVolume = MeasuredSpec & {
  /** Of which paths within it nothing is copied. */
  readonly leavesOut?: (path: string) => boolean;
};

/** The same for one that is to be made. */
type VolumeSpec = Pick<AgentContainerSpec, 'agentId' | 'userId' | 'volume'>;

/** A volume as it is known by name and by what has made it; made anew it is another one. */
export interface MadeVolume {
  readonly name: string;
  /** Empty for one that does not say it. */
  readonly madeBy: string;
}

/** A volume of this installation's, as Docker lists it. */
export interface ListedVolume extends MadeVolume {
  readonly agentId: string;
}

/**
 * The volumes that hold one agent's state: the one that it uses, earlier ones and archives. Only
 * `ensure`, `make` and `copy` ever make one, and each is told what for.
 */
export class AgentVolumes {
  readonly #client: DockerClient;
  readonly #named: NamedContainers;
  readonly #disk: Pick<DockerDisk, 'limit' | 'room'>;
  readonly #meter: VolumeMeter;
  #hasQuota: Promise<boolean> | undefined;

  constructor(
    client: DockerClient,
    named: NamedContainers,
    disk: Pick<DockerDisk, 'limit' | 'room'>,
  ) {
    this.#client = client;
    this.#named = named;
    this.#disk = disk;
    this.#meter = new VolumeMeter(client);
  }

  /**
   * What each of the volumes takes of the disk, counted no further than the bounds.
   *
   * @param image one that has Node, such as that of the agents.
   * @returns in their order; undefined for one that is not there, or could not be measured.
   */
  async measure(
    image: string,
    volumes: readonly MeasuredSpec[],
    bounds: MeterBounds,
    signal?: AbortSignal,
  ): Promise<(VolumeUse | undefined)[]> {
    const there: MeasuredSpec[] = [];
    for (const each of volumes) if (await this.find(each)) there.push(each);
    if (there.length === 0) return volumes.map(() => undefined);
    const measured = await this.#meter.measure(image, there, bounds, signal);
    const uses = new Map(there.map(({ volume }, at) => [volume, measured[at]]));
    // One that went away just before has been made anew by Docker: it is empty, and goes again.
    for (const each of there) {
      if (await this.find(each)) continue;
      uses.delete(each.volume);
      await this.removeMadeIn(each, () => false);
    }
    return volumes.map(({ volume }) => uses.get(volume));
  }

  /** Whether the engine keeps volumes within a size by itself; asked of it once. */
  keepsQuota(): Promise<boolean> {
    this.#hasQuota ??= this.#tryQuota().catch((error: unknown) => {
      this.#hasQuota = undefined;
      throw error;
    });
    return this.#hasQuota;
  }

  /** The agent's volume; undefined when it is not there, or Docker has just made it by itself. */
  async find(spec: MemorySpec) {
    const found = await this.#find(volumeName(spec), spec.agentId);
    return found && madeBy(found) !== MADE_BY_DOCKER ? made(found) : undefined;
  }

  /** @throws ForeignContainerError when it is not this agent's. */
  async exists(agentId: string, volume: string): Promise<boolean> {
    return (await this.find({ agentId, volume })) !== undefined;
  }

  /** @throws MemoryMissingError */
  async require(spec: MemorySpec): Promise<void> {
    if (!(await this.find(spec))) throw new MemoryMissingError(volumeName(spec));
  }

  /** Adopts the volume that is there, whatever has made it, or creates it. */
  async ensure(spec: VolumeSpec, maker: string): Promise<void> {
    const name = volumeName(spec);
    const found = await this.#find(name, spec.agentId);
    if (found && madeBy(found) !== MADE_BY_DOCKER) return;
    if (found) await this.#remove(name);
    await this.#create(spec, maker);
  }

  /**
   * Makes the volume anew, empty. No container may use it.
   *
   * @throws VolumeTakenError when it is there, and another maker has made it.
   * @throws DiskLowError
   */
  async make(spec: VolumeSpec, maker: string): Promise<void> {
    await this.#disk.room();
    if (await this.findOwn(spec, maker)) await this.#remove(volumeName(spec));
    await this.#create(spec, maker);
  }

  /**
   * What an earlier attempt of the same maker has left.
   *
   * @throws VolumeTakenError
   */
  async findOwn(spec: MemorySpec, maker: string): Promise<MadeVolume | undefined> {
    const found = await this.find(spec);
    if (found && found.madeBy !== maker) throw new VolumeTakenError(found.name);
    return found;
  }

  /**
   * Makes the volume anew, as a copy of another one: owners, modes, times and links as there. What
   * uses either should not run: of what is written meanwhile the copy may have some and not other.
   *
   * @param from another one of the agent's, or another agent's.
   * @throws VolumeMissingError, VolumeTakenError, DiskLowError
   * @throws VolumeTooLargeError when more would be written than may be: a file with holes counts in
   *   full, because its holes would be written out.
   */
  async copy(
    spec: AgentContainerSpec,
    from: CopiedVolume,
    maker: string,
    signal?: AbortSignal,
  ): Promise<void> {
    const { agentId, image } = spec;
    const { leavesOut, ...original } = from;
    if (!(await this.find(original))) throw new VolumeMissingError(from.volume);
    await this.#removeCopiers(agentId);
    // Nothing is written to what is to be replaced.
    if (original.agentId === agentId) await removeHelpersOf(this.#client, from);
    // Before anything is written. What it grows by meanwhile the copy itself finds out.
    const room = await this.#disk.room();
    const [use] = await this.measure(image, [original], { contents: room + 1 }, signal);
    if (use && use.contents > room) throw new VolumeTooLargeError(room);
    await this.make(spec, maker);
    const { copyFrom, copyTo } = spareNames(agentId);
    const source = await this.#createCopier(spec, copyFrom, original);
    const target = await this.#createCopier(spec, copyTo, { ...spec, volume: volumeName(spec) });
    // A volume that went away meanwhile has been made anew by Docker, and is empty.
    if (!(await this.find(original))) {
      await this.#removeCopiers(agentId);
      // Of an agent that is removed nobody else takes it away.
      if (original.agentId !== agentId) await this.removeMadeIn(original, () => false);
      throw new VolumeMissingError(from.volume);
    }
    const maxBytes = await this.#disk.room();
    const { usersFrom } = await readEngine(this.#client);
    await copyThrough(source, target, { cancelled: signal, leavesOut, maxBytes, usersFrom });
    await this.#removeCopiers(agentId);
  }

  /**
   * Removes those of the named volumes that are there and were made by whom they say, and the
   * containers that are kept beside the agent's own. Its container goes first.
   *
   * @returns the agent's volumes that are there still.
   */
  async remove(agentId: string, named: readonly MadeVolume[]): Promise<ListedVolume[]> {
    await this.#removeCopiers(agentId);
    await this.#named.remove(agentId, spareNames(agentId).previous);
    await this.#find(containerName(agentId), agentId);
    const stay: ListedVolume[] = [];
    for (const volume of await this.list(agentId)) {
      const isNamed = named.some((each) => isSame(each, volume));
      if (isNamed || volume.madeBy === MADE_BY_DOCKER) await this.#remove(volume.name);
      else stay.push(volume);
    }
    return stay;
  }

  /** Removes the agent's volume if one of these makers has made it. Its container goes first. */
  async removeMadeIn(spec: MemorySpec, makers: (maker: string) => boolean): Promise<void> {
    const found = await this.#find(volumeName(spec), spec.agentId);
    if (found && (makers(madeBy(found)) || madeBy(found) === MADE_BY_DOCKER)) {
      await this.#remove(found.Name);
    }
  }

  /** The volumes of one agent, or of all of this installation's. */
  async list(agentId?: string): Promise<ListedVolume[]> {
    const label = [
      `${LABEL.installation}=${this.#client.installation}`,
      agentId === undefined ? LABEL.agent : `${LABEL.agent}=${agentId}`,
    ];
    const filters = JSON.stringify({ label });
    const { Volumes: volumes } = await this.#client.call((docker, bound) =>
      docker.listVolumes({ filters, ...bound }),
    );
    return (volumes ?? []).map((volume) => ({
      ...made(volume),
      agentId: labelsOf(volume)[LABEL.agent] ?? '',
    }));
  }

  async #create(spec: VolumeSpec, maker: string): Promise<void> {
    const name = volumeName(spec);
    const labels = { ...ownershipLabels(spec, this.#client), [LABEL.madeBy]: maker };
    const sized = (await this.keepsQuota()) && { DriverOpts: { size: String(this.#disk.limit) } };
    await this.#client.call((docker, bound) =>
      docker.createVolume({ Name: name, Labels: labels, ...sized, ...bound }),
    );
    // Creating one that exists succeeds and changes nothing: so look whose it is.
    await this.#find(name, spec.agentId);
  }

  /**
   * By making a volume of a size: Docker refuses that where it cannot keep it, on all but file systems
   * with project quotas.
   */
  async #tryQuota(): Promise<boolean> {
    if (!Number.isFinite(this.#disk.limit)) return false;
    const { installation, labels } = this.#client;
    await this.#removeTried();
    const name = `agent-platform-quota-${randomUUID()}`;
    const made = await this.#client.callUnless([400, 500], (docker, bound) =>
      docker.createVolume({
        Name: name,
        Labels: { ...labels, [LABEL.installation]: installation, [LABEL.tries]: 'size' },
        DriverOpts: { size: String(this.#disk.limit) },
        ...bound,
      }),
    );
    if (made) await this.#remove(name);
    return made !== undefined;
  }

  /** What workers, or an engine, that died over it have left. */
  async #removeTried(): Promise<void> {
    const label = [`${LABEL.installation}=${this.#client.installation}`, LABEL.tries];
    const filters = JSON.stringify({ label });
    const { Volumes: volumes } = await this.#client.call((docker, bound) =>
      docker.listVolumes({ filters, ...bound }),
    );
    for (const { Name: name } of volumes ?? []) await this.#remove(name);
  }

  /** A container that never runs, on one of the volumes of a copy. */
  async #createCopier(
    spec: AgentContainerSpec,
    name: string,
    of: MeasuredSpec,
  ): Promise<Docker.Container> {
    const { volume } = of;
    const mount = volumeMount(of, this.#client, { volume, target: COPIED, copiesImage: false });
    const id = await this.#named.create({
      name,
      Image: spec.image,
      Labels: ownershipLabels(spec, this.#client),
      HostConfig: { NetworkMode: 'none', Mounts: [mount] },
    });
    return this.#client.docker.getContainer(id);
  }

  async #removeCopiers(agentId: string): Promise<void> {
    const { copyFrom, copyTo } = spareNames(agentId);
    await this.#named.remove(agentId, copyFrom);
    await this.#named.remove(agentId, copyTo);
  }

  async #remove(name: string): Promise<void> {
    await removeDeadMeters(this.#client, name);
    await removeHelpersOf(this.#client, { volume: name });
    await this.#client.callUnless([404], (docker, bound) => docker.getVolume(name).remove(bound));
  }

  async #find(name: string, agentId: string): Promise<Docker.VolumeInspectInfo | undefined> {
    const found = await this.#client.callUnless([404], (docker, bound) =>
      docker.getVolume(name).inspect(bound),
    );
    if (found && !isOurs(found.Labels, agentId, this.#client)) {
      throw new ForeignContainerError('volume', name);
    }
    return found;
  }
}

/** Whether both are one volume, and not one that was made anew under the name of the other. */
export const isSame = (a: MadeVolume, b: MadeVolume): boolean =>
  a.name === b.name && a.madeBy === b.madeBy;

const made = (volume: Docker.VolumeInspectInfo): MadeVolume => ({
  name: volume.Name,
  madeBy: madeBy(volume),
});

const madeBy = (volume: Docker.VolumeInspectInfo): string => labelsOf(volume)[LABEL.madeBy] ?? '';

/** Docker says null of a volume without any. */
const labelsOf = ({ Labels }: { readonly Labels: Readonly<Record<string, string>> | null }) =>
  Labels ?? {};
