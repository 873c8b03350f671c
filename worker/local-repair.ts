import path from 'node:path';
import type { NativeConnection } from '@temporalio/worker';
import type { Logger } from 'pino';
import { findAgent } from '../src/agents/agents/agents.js';
import { hostLimiters } from '../src/agents/watchdog/host-limiters.js';
import { StartProgress } from '../src/agents/watchdog/start-progress.js';
import { supervisedOf } from '../src/agents/operations/supervisors.js';
import { REPAIR_PAUSE_MS, STARTUP_GRACE_MS } from '../src/types/watchdog.js';
import type { DockerHost } from '../src/docker/containers/docker-host.js';
import type { Database } from '../src/platform/database/database.js';
import { DockerAbsences } from '../src/agents/watchdog/docker-absence.js';
import { AgentGuard } from '../src/agents/local-repair/agent-guard.js';
import { HostJournal } from '../src/agents/local-repair/host-journal.js';
import { LocalRepair, type LocalRepairTimes } from '../src/agents/local-repair/local-repair.js';
import { ControlPlaneReach } from '../src/agents/local-repair/control-plane-reach.js';
import type { Settings } from '../src/settings.js';
import type { Supervisors } from '../temporal/supervisors.js';

export const LOCAL_REPAIR_TIMES: LocalRepairTimes = {
  probe: 5_000,
  away: 30_000,
  again: 30_000,
  notify: 15_000,
  pause: REPAIR_PAUSE_MS,
  grace: STARTUP_GRACE_MS,
};

interface ConnectedTemporal {
  readonly connection: NativeConnection;
  readonly namespace: string;
  readonly supervisors: Pick<Supervisors, 'checkNow'>;
}

/** Undefined until Temporal was reached for the first time. */
export interface TemporalAtHand {
  connected: ConnectedTemporal | undefined;
}

export interface LocalRepairParts {
  readonly settings: Settings;
  readonly database: Database;
  readonly docker: DockerHost;
  readonly log: Logger;
  readonly atHand: TemporalAtHand;
  /** Reports whether the agents in the journal belong to this engine, as far as is known. */
  readonly mayAct?: () => boolean;
  readonly times?: LocalRepairTimes;
}

/** Opens the repair that keeps this host's agents running while Temporal or PostgreSQL is unavailable. */
export async function openLocalRepair(parts: LocalRepairParts) {
  const {
    atHand,
    database,
    docker,
    log,
    mayAct = () => true,
    settings,
    times = LOCAL_REPAIR_TIMES,
  } = parts;
  const { host, watchdog } = settings.agents;
  const folder = path.join(settings.process.dataDir, 'host-journal', host);
  const journal = await HostJournal.open(folder, log);
  const guard = new AgentGuard(journal);
  const reach = new ControlPlaneReach(
    {
      Temporal: (timeoutMs) => probeTemporal(atHand.connected, timeoutMs),
      PostgreSQL: () => database.ping(),
    },
    times.probe,
    log,
  );
  const limiters = hostLimiters(settings.agents.startsAtOnce);
  const progress = new StartProgress(docker.containers);
  const absences = new DockerAbsences();
  const repair = new LocalRepair({
    docker,
    journal,
    guard,
    absences,
    reach,
    mayAct,
    settings: watchdog,
    times,
    limiters,
    progress,
    log,
    async notify({ agentId, userId }) {
      const agent = await findAgent(database.asUser(userId), agentId);
      if (!agent || agent.desired === 'deleted') return;
      await atHand.connected?.supervisors.checkNow(supervisedOf(agent));
    },
  });
  return {
    /** State shared with the activities of this host. */
    shared: { absences, guard, limiters, progress },
    knowsAgents: journal.entries().length > 0,
    /** Resolves when the signal has aborted and no repair is in flight. */
    async run(signal: AbortSignal): Promise<void> {
      await Promise.all([reach.watch(signal), repair.run(signal)]);
      await journal.settled();
    },
  };
}

/** Probes Temporal's history service: a frontend by itself cannot advance workflows. */
async function probeTemporal(at: ConnectedTemporal | undefined, timeoutMs: number): Promise<void> {
  if (!at) throw new Error('not connected yet');
  const { connection, namespace } = at;
  await connection.withDeadline(Date.now() + timeoutMs, () =>
    connection.workflowService.describeNamespace({ namespace }),
  );
}
