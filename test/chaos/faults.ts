import { WorkflowNotFoundError } from '@temporalio/client';
import { killContainer, killGateway } from '../../bench/support/deeds.js';
import { poll } from '../../dev/poll.js';
import { containerName } from '../../src/docker/containers/container-spec.js';
import { superviseAgentId } from '../../workflows/ids.js';
import { restartEngine } from './kills.js';
import { HOSTS, SERVICES, type LongPlan, type Service } from './long-plan.js';
import type { LongSite } from './long-site.js';
import { memoriesOf } from './marks.js';
import { signal, stopWhereItIs } from './pauses.js';
import { hostOf } from './site.js';

/** Time limit to remove a memory while the agent may be starting. */
const REMOVAL_MS = 10_000;

type Ways = keyof LongSite['ways'];

const EVERYBODY: readonly Ways[] = ['api', ...HOSTS];

/**
 * Begins the fault of a round.
 * @returns a function that ends it.
 */
export async function beginFault(
  site: LongSite,
  { fault, host, mode }: LongPlan,
  agentIds: readonly string[],
): Promise<() => Promise<void>> {
  const away = (services: readonly Service[], from: readonly Ways[]) => {
    const ways = from.flatMap((each) => services.map((service) => site.ways[each][service]));
    for (const way of ways) way[mode]();
    return () => {
      for (const way of ways) way.mend();
      return Promise.resolve();
    };
  };
  switch (fault) {
    case 'temporal away':
      return away(['temporal'], EVERYBODY);
    case 'postgres away':
      return away(['postgres'], EVERYBODY);
    case 'both away':
      return away(SERVICES, EVERYBODY);
    case 'worker without temporal':
      return away(['temporal'], [host]);
    case 'worker without postgres':
      return away(['postgres'], [host]);
    case 'api without temporal':
      return away(['temporal'], ['api']);
    case 'worker paused':
      return pause(site, `worker-${host}`);
    case 'temporal paused':
      return pause(site, 'temporal');
    case 'postgres paused':
      return pause(site, 'postgres');
    case 'engine away':
      await site.hosts[host].killEngine();
      return () => site.hosts[host].startEngine();
    case 'supervisors terminated':
      await Promise.all(agentIds.map((agentId) => terminate(site, agentId)));
      return () => Promise.resolve();
    case 'memory removed':
      await removeMemory(site, agentIds[0] ?? '');
      return () => Promise.resolve();
  }
}

/** Applies the deed of a round to its first agent or to that agent's host, if either exists. */
export async function doDeed(
  site: LongSite,
  { deed, fault }: LongPlan,
  agentId: string,
): Promise<void> {
  const host = await hostOf(site, agentId);
  const name = HOSTS.find((each) => site.hosts[each] === host);
  if (!host || !name) return;
  const { docker } = host;
  switch (deed) {
    case 'none':
      return;
    case 'container killed':
      return void (await killContainer(docker, agentId));
    case 'gateway killed':
      return void (await killGateway(docker, agentId));
    case 'gateway hung':
      return site.hosts[name].hangGateway(agentId);
    case 'container paused':
      return docker.getContainer(containerName(agentId)).pause();
    case 'worker killed':
      return kill(await site.livingPidOf(`worker-${name}`));
    case 'api killed':
      return kill(await site.livingPidOf('api'));
    case 'engine killed':
      if (fault !== 'engine away') await restartEngine(host);
  }
}

async function terminate({ temporal }: LongSite, agentId: string): Promise<void> {
  try {
    await temporal.workflow.getHandle(superviseAgentId(agentId)).terminate('chaos');
  } catch (error) {
    if (!(error instanceof WorkflowNotFoundError)) throw error;
  }
}

async function removeMemory(site: LongSite, agentId: string): Promise<void> {
  const host = await hostOf(site, agentId);
  if (!host) throw new Error(`${agentId} is on no host`);
  const { docker } = host;
  let memories: Awaited<ReturnType<typeof memoriesOf>> | undefined;
  // The engine may be unavailable, or the supervisor may be restarting the agent, which holds the volume.
  const attempt = async () => {
    try {
      memories ??= await memoriesOf(docker, agentId);
      const container = docker.getContainer(containerName(agentId));
      await container.remove({ force: true }).catch(() => undefined); // there may be no container
      for (const { name } of memories) await docker.getVolume(name).remove({ force: true });
      return true;
    } catch {
      return undefined;
    }
  };
  const isGone = await poll(attempt, { timeoutMs: REMOVAL_MS });
  if (!isGone) throw new Error(`The memory of ${agentId} could not be removed`);
}

async function pause(site: LongSite, part: string): Promise<() => Promise<void>> {
  const pid = await site.livingPidOf(part);
  if (pid === undefined) throw new Error(`${part} is not running`);
  const goOn = await stopWhereItIs(pid);
  return () => Promise.resolve(goOn());
}

function kill(pid: number | undefined): void {
  if (pid !== undefined) signal(pid, 'SIGKILL');
}
