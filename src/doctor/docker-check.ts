import { addressRange } from '../docker/containers/address-range.js';
import { ContainerError } from '../docker/containers/container-errors.js';
import { DockerClient } from '../docker/containers/docker-client.js';
import { configuredDocker } from '../docker/containers/docker-host.js';
import { containerSettings } from '../docker/containers/settings.js';
import { agentSettings } from '../agents/lifecycle/settings.js';
import { reasonOf } from '../lib/reason-of.js';
import { secretsSettings } from '../platform/secrets/settings.js';
import { checkOf, failure, ok, warning, type Check, type Finding } from './check.js';

/** Milliseconds of the first call, after which an engine counts as hung. */
const FIRST_CALL_MS = 4_000;

/** Agents' networks, each a /28 of the pool's /16. */
const NETWORK_SIZE = 16;
const NETWORKS = 65_536 / NETWORK_SIZE;

/** Few enough free networks for a warning. */
const FEW_NETWORKS = 64;

const areas = { agents: agentSettings, containers: containerSettings, secrets: secretsSettings };

/** Checks the engine on this machine, its runtime, its disk and the pool of agents' networks. */
export const dockerCheck: Check = checkOf('docker', areas, async (settings) => {
  const { dockerHost, runtime } = settings.containers;
  const client = new DockerClient({ dockerHost });
  const place = dockerHost ?? 'its usual socket';
  try {
    const { Version: version } = await client.call((docker) => docker.version(), FIRST_CALL_MS);
    const docker = configuredDocker(settings);
    const [engine, disk, taken] = await Promise.all([
      docker.engine(),
      docker.disk.space(),
      docker.networks.takenSubnets(NO_AGENT),
    ]);
    const lacksRuntime =
      runtime !== undefined && engine !== undefined && !engine.runtimes.includes(runtime);
    return [
      ok(`Docker ${version} answers at ${place}.`),
      ...(lacksRuntime
        ? [
            failure(
              `Docker lacks the runtime "${runtime}" of AGENT_CONTAINER_RUNTIME: install it and name it ` +
                "in Docker's daemon.json.",
            ),
          ]
        : []),
      disk === undefined
        ? ok("The disk of Docker's volumes cannot be measured from here.")
        : diskFinding(disk, settings.containers.diskFloor),
      poolFinding(settings.agents.subnetPool, taken),
    ];
  } catch (error) {
    if (!(error instanceof ContainerError)) throw error;
    const reason = reasonOf(error);
    const text = `Docker at ${place}: ${reason}. Start it, or correct DOCKER_HOST`;
    // Without AGENT_HOST, an API process of production uses no engine, and the hosts report theirs.
    return settings.agents.isApiBesideHost
      ? [failure(`${text}.`)]
      : [warning(`${text}, if a worker runs here.`)];
  }
});

/** An id that no agent has, so that all networks count as those of others. */
const NO_AGENT = 'none';

interface Disk {
  readonly free: number;
  readonly low: boolean;
}

function diskFinding({ free, low }: Disk, floor: number): Finding {
  const left = `The disk of Docker's volumes has ${gigabytes(free)} free`;
  if (!low) return ok(`${left}.`);
  return failure(
    `${left}, less than AGENT_HOST_DISK_FLOOR (${gigabytes(floor)}): free some, until then the host accepts no agents.`,
  );
}

const gigabytes = (bytes: number): string => `${(bytes / 1e9).toFixed(1)} GB`;

/** Compares the pool with the networks of Docker and the routes of its host. */
export function poolFinding(pool: string, taken: readonly string[]): Finding {
  const { first, last } = addressRange(pool);
  const used = new Set<number>();
  for (const subnet of taken) {
    const range = addressRange(subnet);
    const from = Math.max(range.first, first);
    const to = Math.min(range.last, last);
    for (let at = from - (from % NETWORK_SIZE); at <= to; at += NETWORK_SIZE) used.add(at);
  }
  const free = NETWORKS - used.size;
  const text = `${free} of ${NETWORKS} networks of AGENT_SUBNET_POOL (${pool}) are free`;
  const remedy = 'choose another pool, or remove unused networks (docker network ls, ip route).';
  if (free === 0) return failure(`${text}: ${remedy}`);
  return free < FEW_NETWORKS ? warning(`${text}: ${remedy}`) : ok(`${text}.`);
}
