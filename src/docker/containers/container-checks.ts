import { createHash } from 'node:crypto';
import { tryParseJson } from '../../lib/json.js';
import type { Check, CheckName } from '../../types/verification.js';
import type { AgentNetworks } from './agent-networks.js';
import { ForeignContainerError } from './container-errors.js';
import { containerOptions } from './container-profile.js';
import { containerName, LABEL, type AgentContainerSpec } from './container-spec.js';
import type { DockerClient } from './docker-client.js';
import { CONFIG_FILE, platformDifferences, platformPart } from './openclaw-config.js';
import { OwnContainers } from './own-containers.js';
import {
  profileDifferences,
  type ImageDefaults,
  type ReportedContainer,
} from './profile-differences.js';
import { readStateFile } from './read-state-file.js';

/** Maximum number of bytes of `openclaw.json`; the user's part may have 64 KiB. */
const MAX_CONFIG_BYTES = 1024 * 1024;

type DockerCheckName = Exclude<CheckName, 'gateway'>;

/** Docker's part of an agent's verification. */
export interface DockerChecks {
  readonly checks: Readonly<Record<DockerCheckName, Check>>;
  /** Id of the image that the container has; empty without exactly one container. */
  readonly image: string;
}

interface Found {
  readonly container: ReportedContainer;
  readonly image: { readonly Id: string; readonly Config: ImageDefaults } | undefined;
}

/** Compares an agent's container with the one that the platform would make. Changes nothing. */
export class ContainerChecks {
  readonly #client: DockerClient;
  readonly #own: OwnContainers;
  readonly #networks: Pick<AgentNetworks, 'find'>;
  readonly #runtime: string | undefined;

  constructor(
    client: DockerClient,
    networks: Pick<AgentNetworks, 'find'>,
    runtime: string | undefined,
  ) {
    this.#client = client;
    this.#own = new OwnContainers(client);
    this.#networks = networks;
    this.#runtime = runtime;
  }

  /** Measures an agent's container, profile and configuration. @throws DockerUnavailableError, DockerRefusedError */
  async measure(spec: AgentContainerSpec): Promise<DockerChecks> {
    const { count, found } = await this.#find(spec);
    if (!found) {
      const none = (name: DockerCheckName): Check =>
        failed(name, `${count} containers have the labels of the agent; one must`);
      return {
        checks: {
          container: none('container'),
          profile: none('profile'),
          configuration: none('configuration'),
        },
        image: '',
      };
    }
    return {
      checks: {
        container: containerCheck(spec, found),
        profile: await this.#profile(spec, found),
        configuration: await this.#configuration(spec, found),
      },
      image: found.container.Image,
    };
  }

  /** Finds the one container with the agent's labels; none if there are several, or another owner's. */
  async #find(spec: AgentContainerSpec): Promise<{ count: number; found?: Found }> {
    try {
      const all = await this.#own.all(spec.agentId);
      const [only] = all;
      if (all.length !== 1 || only === undefined) return { count: all.length };
      const { Id: id } = only;
      const [container, image] = await Promise.all([
        this.#client.callUnless<ReportedContainer>([404], (docker, bound) =>
          docker.getContainer(id).inspect(bound),
        ),
        this.#client.callUnless([404], (docker) => docker.getImage(spec.image).inspect()),
      ]);
      return container ? { count: 1, found: { container, image } } : { count: 0 };
    } catch (error) {
      if (error instanceof ForeignContainerError) return { count: 0 };
      throw error;
    }
  }

  async #profile(spec: AgentContainerSpec, { container, image }: Found): Promise<Check> {
    const options = containerOptions(spec, this.#client, this.#runtime);
    const fingerprint = options.Labels?.[LABEL.spec] ?? '';
    const differences = profileDifferences(container, {
      spec,
      options,
      image: image?.Config ?? {},
    });
    if (container.Config.Labels[LABEL.spec] !== fingerprint) differences.push('fingerprint');
    if (!(await this.#isAloneOnNetwork(spec, container))) differences.push('network');
    return differences.length === 0
      ? passed('profile', `fingerprint ${fingerprint}`)
      : failed('profile', `differs in ${differences.join(', ')}`);
  }

  /** Reports whether the container is on the agent's own network, with no others than the platform's helpers. */
  async #isAloneOnNetwork(spec: AgentContainerSpec, found: ReportedContainer): Promise<boolean> {
    const network = await this.#networks.find(spec.agentId).catch((error: unknown) => {
      if (error instanceof ForeignContainerError) return undefined;
      throw error;
    });
    const attached = found.NetworkSettings.Networks[containerName(spec.agentId)]?.NetworkID;
    if (!network || attached !== network.Id) return false;
    const isOfSubnet = network.IPAM?.Config?.some(({ Subnet }) => Subnet === spec.subnet) === true;
    const there = await this.#client.listContainers({ filters: { network: [network.Id] } });
    const { installation } = this.#client;
    const isWelcome = ({ Id: id, Labels: labels }: (typeof there)[number]) =>
      id === found.Id ||
      (labels[LABEL.pushes] === spec.agentId && labels[LABEL.installation] === installation);
    return isOfSubnet && there.every(isWelcome);
  }

  async #configuration(spec: AgentContainerSpec, { container }: Found): Promise<Check> {
    const written = await readStateFile(this.#client, container.Id, {
      path: CONFIG_FILE,
      maxBytes: MAX_CONFIG_BYTES,
    });
    if (written === undefined) return failed('configuration', 'openclaw.json cannot be read');
    const wanted = tryParseJson(spec.files[CONFIG_FILE] ?? '');
    const differences = platformDifferences(tryParseJson(written), wanted);
    if (differences.length > 0) {
      return failed('configuration', `openclaw.json differs in ${differences.join(', ')}`);
    }
    const hash = createHash('sha256')
      .update(JSON.stringify(platformPart(wanted)))
      .digest('hex');
    return passed('configuration', `sha256 ${hash}`);
  }
}

function containerCheck(spec: AgentContainerSpec, { container, image }: Found): Check {
  const { Id: id, Image: has, State: state } = container;
  if (!state.Running || state.Paused) {
    return failed('container', `container ${id} is ${state.Paused ? 'paused' : state.Status}`);
  }
  if (!image) return failed('container', `image ${spec.image} is not on the host`);
  if (image.Id !== has) {
    return failed('container', `container ${id} has the image ${has}, the release ${image.Id}`);
  }
  return passed('container', `container ${id}, image ${spec.image}, image id ${has}`);
}

const passed = (name: CheckName, detail: string): Check => ({ name, ok: true, detail });
const failed = (name: CheckName, detail: string): Check => ({ name, ok: false, detail });
