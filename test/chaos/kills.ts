import { poll } from '../../dev/poll.js';
import { killContainer, killGateway } from '../../bench/support/deeds.js';
import { type Kill, type Part, isPart } from './plan.js';
import { hostOf, type Site, type SiteHost } from './site.js';

/** For a part to be there, and to come back. */
const PART_TIMEOUT_MS = 90_000;

/** For a container to be there that can be killed. */
const AGENT_TIMEOUT_MS = 3_000;

/**
 * Kills it without a word, and waits until it is back, where that is not the supervisor's work.
 *
 * @returns false when there was nothing to kill.
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
    // Whatever it fails with: there was no running container, or it ended by itself meanwhile.
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

/** As a power cut would end it. */
export async function restartEngine(host: SiteHost): Promise<void> {
  await host.killEngine();
  await host.startEngine();
}

/** Kills a process that is then started again, and waits until it is. */
export async function killProcess(
  name: string,
  living: () => Promise<number | undefined>,
): Promise<void> {
  // It may just be coming back from another kill.
  const pid = await poll(
    async () => {
      const now = await living();
      return now !== undefined && isKilled(now) ? now : undefined;
    },
    { timeoutMs: PART_TIMEOUT_MS },
  );
  if (pid === undefined) throw new Error(`${name} does not run`);
  const back = await poll(
    async () => {
      const now = await living();
      return now === pid ? undefined : now;
    },
    { timeoutMs: PART_TIMEOUT_MS },
  );
  if (back === undefined) throw new Error(`${name} did not come back`);
}

/** False when it has ended meanwhile. */
function isKilled(pid: number): boolean {
  try {
    return process.kill(pid, 'SIGKILL');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return false;
    throw error;
  }
}
