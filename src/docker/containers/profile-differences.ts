import { isDeepStrictEqual } from 'node:util';
import type Docker from 'dockerode';
import { volumeName, type AgentContainerSpec } from './container-spec.js';

type Inspected = Docker.ContainerInspectInfo;

/** Docker's report of a container, with fields missing in dockerode's types. */
export interface ReportedContainer extends Inspected {
  readonly HostConfig: Inspected['HostConfig'] & {
    readonly MaskedPaths?: readonly string[] | null;
    readonly ReadonlyPaths?: readonly string[] | null;
  };
}

/** Options of an image for containers that do not override them. */
export interface ImageDefaults {
  readonly Env?: readonly string[] | null;
  readonly Cmd?: readonly string[] | string | null;
  readonly Entrypoint?: readonly string[] | string | null;
  readonly WorkingDir?: string | null;
  readonly Volumes?: object | null;
}

export interface WantedContainer {
  readonly spec: AgentContainerSpec;
  /** The options of the agent's container as the platform would make it. */
  readonly options: Docker.ContainerCreateOptions;
  readonly image: ImageDefaults;
}

/** Options that grant a container more access to its host; agents have none of them. */
const PRIVILEGES = [
  ...['CapAdd', 'Devices', 'DeviceRequests', 'DeviceCgroupRules', 'GroupAdd', 'Binds'],
  ...['VolumesFrom', 'Links', 'PidMode', 'UTSMode', 'UsernsMode', 'Sysctls', 'PublishAllPorts'],
  ...['AutoRemove', 'Privileged', 'NanoCpus', 'CpusetCpus', 'CpusetMems'],
] as const;

/** Options that Docker reports as they were given. */
const REPORTED_AS_GIVEN = [
  ...['NetworkMode', 'PortBindings', 'ExtraHosts', 'Tmpfs', 'ReadonlyRootfs', 'CapDrop'],
  ...['SecurityOpt', 'Init', 'PidsLimit', 'OomScoreAdj', 'CpuShares', 'Memory', 'MemorySwap'],
  ...['CpuPeriod', 'CpuQuota', 'LogConfig', 'RestartPolicy', 'Ulimits', 'Runtime'],
] as const;

/** IPC modes that share nothing with another container or the host. */
const OWN_IPC: ReadonlySet<unknown> = new Set([undefined, '', 'none', 'private']);

/**
 * Compares Docker's report of a running container with the hardened profile. Returns the names of what
 * differs, without values.
 */
export function profileDifferences(found: ReportedContainer, wanted: WantedContainer): string[] {
  const { image, options, spec } = wanted;
  const { Config: config, HostConfig: host } = found;
  const { HostConfig: wantedHost = {} } = options;
  const equal: Readonly<Record<string, boolean>> = {
    User: config.User === options.User,
    Env: isDeepStrictEqual(
      variables(config.Env),
      variables([...(image.Env ?? []), ...(options.Env ?? [])]),
    ),
    Cmd: isDeepStrictEqual(listed(config.Cmd), listed(image.Cmd)),
    Entrypoint: isDeepStrictEqual(listed(config.Entrypoint), listed(image.Entrypoint)),
    WorkingDir: (config.WorkingDir || '/') === (image.WorkingDir || '/'),
    ...Object.fromEntries(
      REPORTED_AS_GIVEN.map((name) => [
        name,
        !(name in wantedHost) || isSame(host[name], wantedHost[name]),
      ]),
    ),
    ...Object.fromEntries(PRIVILEGES.map((name) => [name, isNone(host[name])])),
    IpcMode: OWN_IPC.has(host.IpcMode),
    // Docker masks parts of /proc and /sys unless a container was created with access to them.
    MaskedPaths: !isNone(host.MaskedPaths),
    ReadonlyPaths: !isNone(host.ReadonlyPaths),
    Mounts: hasOwnMount(found, spec, image),
    Ports: hasOwnPort(found, wantedHost),
    Networks: isDeepStrictEqual(Object.keys(found.NetworkSettings.Networks), [options.name]),
  };
  return Object.entries(equal).flatMap(([name, isEqual]) => (isEqual ? [] : [name]));
}

/** Reports whether the volume is the agent's; volumes that the image declares are new and empty. */
function hasOwnMount(
  { Mounts: mounts }: ReportedContainer,
  spec: AgentContainerSpec,
  { Volumes: declared }: ImageDefaults,
): boolean {
  const names = mounts.filter(({ Destination: at }) => !Object.hasOwn(declared ?? {}, at));
  const [own] = names;
  return (
    names.length === 1 && own?.Type === 'volume' && own.Name === volumeName(spec) && own.RW === true
  );
}

/** Reports whether the only published port is the one that was wanted, at loopback. */
function hasOwnPort(
  { NetworkSettings: { Ports: ports } }: ReportedContainer,
  { PortBindings: wanted = {} }: Docker.HostConfig,
): boolean {
  const published = Object.entries(ports).filter(([, bindings]) => !isNone(bindings));
  return isDeepStrictEqual(Object.fromEntries(published), wanted);
}

const listed = (value: readonly string[] | string | null | undefined): readonly string[] =>
  value === null || value === undefined ? [] : [value].flat();

/** Returns the last value of each variable. */
const variables = (env: readonly string[]) =>
  new Map(
    env
      .map((each) => [each.slice(0, each.indexOf('=')), each] as const)
      .toSorted(([a], [b]) => (a < b ? -1 : Number(a > b))),
  );

/** Compares values in whose objects Docker adds empty fields. */
function isSame(found: unknown, wanted: unknown): boolean {
  if (typeof wanted !== 'object' || wanted === null) return found === wanted;
  if (Array.isArray(wanted)) {
    return (
      Array.isArray(found) &&
      found.length === wanted.length &&
      wanted.every((each, at) => isSame(found[at], each))
    );
  }
  if (typeof found !== 'object' || found === null) return false;
  const names = new Set([...Object.keys(found), ...Object.keys(wanted)]);
  return [...names].every((name) => {
    const here: unknown = Reflect.get(found, name);
    const there: unknown = Reflect.get(wanted, name);
    return there === undefined ? isNone(here) : isSame(here, there);
  });
}

/** Reports whether an option has Docker's value for "none". */
function isNone(value: unknown): boolean {
  if (typeof value === 'object' && value !== null) return Object.keys(value).length === 0;
  return !value;
}
