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
import { createContainer } from './create-container.js';
import type { NamedContainers } from './named-containers.js';
import { COPIED, copyThrough } from './volume-copy.js';
import { removeHelpersOf } from './helper-leftovers.js';
import { removeDeadMeters, VolumeMeter, type MeterBounds, type VolumeUse } from './volume-meter.js';

export type MemorySpec = Pick<AgentContainerSpec, 'agentId' | 'volume'>;

export type MeasuredSpec = Pick<AgentContainerSpec, 'agentId' | 'userId'> & {
  readonly volume: string;
};

export type CopiedVolume = MeasuredSpec & {
  /** Predicate for paths within the volume to skip. */
  readonly leavesOut?: (path: string) => boolean;
};

type VolumeSpec = Pick<AgentContainerSpec, 'agentId' | 'userId' | 'volume'>;

/** A volume identified by its name and its maker; a recreated volume has another maker. */
export interface MadeVolume {
  readonly name: string;
  /** Empty if the volume names no maker. */
  readonly madeBy: string;
}

export interface ListedVolume extends MadeVolume {
  readonly agentId: string;
}

/**
 * The volumes of an agent's state: current, earlier and archived. Only `ensure`, `make` and `copy` create
 * volumes, and each records the maker.
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
   * Measures the disk use of volumes, up to the bounds, with any image that has Node; undefined for a volume
   * that is missing or could not be measured.
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
    // Docker recreates, empty, a volume that vanished just before; remove it again.
    for (const each of there) {
      if (await this.find(each)) continue;
      uses.delete(each.volume);
      await this.removeMadeIn(each, () => false);
    }
    return volumes.map(({ volume }) => uses.get(volume));
  }

  /** Reports whether the engine itself enforces volume sizes; cached after the first check. */
  keepsQuota(): Promise<boolean> {
    this.#hasQuota ??= this.#tryQuota().catch((error: unknown) => {
      this.#hasQuota = undefined;
      throw error;
    });
    return this.#hasQuota;
  }

  /** Finds the agent's volume; undefined if it is missing, or was only created by Docker itself. */
  async find(spec: MemorySpec) {
    const found = await this.#find(volumeName(spec), spec.agentId);
    return found && madeBy(found) !== MADE_BY_DOCKER ? made(found) : undefined;
  }

  /** Reports whether the volume exists. @throws ForeignContainerError if it is another agent's. */
  async exists(agentId: string, volume: string): Promise<boolean> {
    return (await this.find({ agentId, volume })) !== undefined;
  }

  async require(spec: MemorySpec): Promise<void> {
    if (!(await this.find(spec))) throw new MemoryMissingError(volumeName(spec));
  }

  /** Adopts the existing volume, regardless of its maker, or creates it. */
  async ensure(spec: VolumeSpec, maker: string): Promise<void> {
    const name = volumeName(spec);
    const found = await this.#find(name, spec.agentId);
    if (found && madeBy(found) !== MADE_BY_DOCKER) return;
    if (found) await this.#remove(name);
    await this.#create(spec, maker);
  }

  /** Creates the volume, empty. No container may use it. @throws VolumeTakenError, DiskLowError */
  async make(spec: VolumeSpec, maker: string): Promise<void> {
    await this.#disk.room();
    if (await this.findOwn(spec, maker)) await this.#remove(volumeName(spec));
    await this.#create(spec, maker);
  }

  /** Finds the volume that an earlier attempt of the same maker created. @throws VolumeTakenError */
  async findOwn(spec: MemorySpec, maker: string): Promise<MadeVolume | undefined> {
    const found = await this.find(spec);
    if (found && found.madeBy !== maker) throw new VolumeTakenError(found.name);
    return found;
  }

  /**
   * Creates the volume as a copy of another, with owners, modes, times and links. Containers that use either
   * should be stopped, since concurrent writes are copied only in part.
   * @throws VolumeMissingError, VolumeTakenError, DiskLowError, VolumeTooLargeError (holes count in full)
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
    // The agent's old volume is about to be replaced, so its writers are ended.
    if (original.agentId === agentId) await removeHelpersOf(this.#client, from);
    // Checked before anything is written; the copy itself detects later growth.
    const room = await this.#disk.room();
    const [use] = await this.measure(image, [original], { contents: room + 1 }, signal);
    if (use && use.contents > room) throw new VolumeTooLargeError(room);
    await this.make(spec, maker);
    const { copyFrom, copyTo } = spareNames(agentId);
    const source = await this.#createCopier(spec, copyFrom, original);
    const target = await this.#createCopier(spec, copyTo, { ...spec, volume: volumeName(spec) });
    // Docker has recreated, empty, a volume that vanished during the copy.
    if (!(await this.find(original))) {
      await this.#removeCopiers(agentId);
      // Another agent's recreated volume must be removed here: no other code removes it if that agent is removed.
      if (original.agentId !== agentId) await this.removeMadeIn(original, () => false);
      throw new VolumeMissingError(from.volume);
    }
    const maxBytes = await this.#disk.room();
    const { usersFrom } = await readEngine(this.#client);
    await copyThrough(source, target, { cancelled: signal, leavesOut, maxBytes, usersFrom });
    await this.#removeCopiers(agentId);
  }

  /**
   * Removes the named volumes that exist with the stated maker, and the agent's spare containers, after its
   * own container. Returns the agent's remaining volumes.
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

  /** Removes the agent's volume if its maker matches. Its container must be removed first. */
  async removeMadeIn(spec: MemorySpec, makers: (maker: string) => boolean): Promise<void> {
    const found = await this.#find(volumeName(spec), spec.agentId);
    if (found && (makers(madeBy(found)) || madeBy(found) === MADE_BY_DOCKER)) {
      await this.#remove(found.Name);
    }
  }

  /** Lists the volumes of one agent, or of the whole installation. */
  async list(agentId?: string): Promise<ListedVolume[]> {
    const label = [
      `${LABEL.installation}=${this.#client.installation}`,
      agentId === undefined ? LABEL.agent : `${LABEL.agent}=${agentId}`,
    ];
    return (await this.#labelled(label)).map((volume) => ({
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
    // Creating an existing volume succeeds and changes nothing, so check its owner.
    await this.#find(name, spec.agentId);
  }

  /** Creates a volume with a size: Docker refuses it unless the file system has project quotas. */
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

  /** Removes test volumes left by workers, or an engine, that died during the test. */
  async #removeTried(): Promise<void> {
    const label = [`${LABEL.installation}=${this.#client.installation}`, LABEL.tries];
    for (const { Name: name } of await this.#labelled(label)) await this.#remove(name);
  }

  async #labelled(label: readonly string[]): Promise<Docker.VolumeInspectInfo[]> {
    const filters = JSON.stringify({ label });
    const { Volumes: volumes } = await this.#client.call((docker, bound) =>
      docker.listVolumes({ filters, ...bound }),
    );
    return volumes ?? [];
  }

  /** Creates a container that never runs, on one of the volumes of a copy. */
  async #createCopier(
    spec: AgentContainerSpec,
    name: string,
    of: MeasuredSpec,
  ): Promise<Docker.Container> {
    const { volume } = of;
    const mount = volumeMount(of, this.#client, { volume, target: COPIED, copiesImage: false });
    const id = await createContainer(this.#client, {
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

/** Reports whether both are the same volume, not a recreated volume of the same name. */
export const isSame = (a: MadeVolume, b: MadeVolume): boolean =>
  a.name === b.name && a.madeBy === b.madeBy;

const made = (volume: Docker.VolumeInspectInfo): MadeVolume => ({
  name: volume.Name,
  madeBy: madeBy(volume),
});

const madeBy = (volume: Docker.VolumeInspectInfo): string => labelsOf(volume)[LABEL.madeBy] ?? '';

/** Docker reports null for a volume without labels. */
const labelsOf = ({ Labels }: { readonly Labels: Readonly<Record<string, string>> | null }) =>
  Labels ?? {};
