import { poll } from '../../dev/poll.js';
import { killContainer, killGateway } from '../../bench/support/deeds.js';
import { type Kill, type Part, isPart } from './plan.js';
import { hostOf, type Site, type SiteHost } from './site.js';

/** Time limit for a part to be running, and to restart. */
const PART_TIMEOUT_MS = 90_000;

/** Time limit for a container to exist that can be killed. */
const AGENT_TIMEOUT_MS = 3_000;

/**
 * Kills a part without warning and waits until it has restarted, unless the supervisor restarts it.
 *
 * @returns false if there was nothing to kill.
 */
export async function kill(
  site: Site,
  what: Kill,
  agentId: () => string | undefined,
): Promise<boolean> {
  if (isPart(what)) {
    await killPart(site, what);
    return true;
  }
  const deed = what === 'container' ? killContainer : killGateway;
  const attempt = async () => {
    const id = agentId();
    const host = id === undefined ? undefined : await hostOf(site, id);
    if (id === undefined || host === undefined) return undefined;
    // Any failure counts as no kill: no container was running, or it ended before the kill.
    return deed(host.docker, id).catch(() => undefined);
  };
  const at = await poll(attempt, { timeoutMs: AGENT_TIMEOUT_MS, everyMs: 20 });
  return at !== undefined;
}

async function killPart({ hosts, livingPidOf }: Site, part: Part): Promise<void> {
  if (part === 'dockerd') {
    await Promise.all(Object.values(hosts).map(restartEngine));
    return;
  }
  await killProcess(part, () => livingPidOf(part));
}

/** Kills the engine as a power cut would, and starts it again. */
export async function restartEngine(host: SiteHost): Promise<void> {
  await host.killEngine();
  await host.startEngine();
}

/** Kills a process that is restarted automatically, and waits for the restart. */
export async function killProcess(
  name: string,
  living: () => Promise<number | undefined>,
): Promise<void> {
  // The process may still be restarting after another kill.
  const pid = await poll(
    async () => {
      const now = await living();
      return now !== undefined && isKilled(now) ? now : undefined;
    },
    { timeoutMs: PART_TIMEOUT_MS },
  );
  if (pid === undefined) throw new Error(`${name} is not running`);
  const back = await poll(
    async () => {
      const now = await living();
      return now === pid ? undefined : now;
    },
    { timeoutMs: PART_TIMEOUT_MS },
  );
  if (back === undefined) throw new Error(`${name} did not restart`);
}

/** Returns false if the process had already ended. */
function isKilled(pid: number): boolean {
  try {
    return process.kill(pid, 'SIGKILL');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return false;
    throw error;
  }
}
