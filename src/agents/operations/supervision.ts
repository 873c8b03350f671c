import type { Database } from '../../platform/database/database.js';
import type { AgentRow } from '../../platform/database/models.js';
import { UnavailableError } from '../../lib/errors.js';
import type { AgentRef } from '../../types/agent-ref.js';
import { busyAgents, supervisedAgents } from '../watchdog/host-agents.js';
import { supervisedOf, type Supervised } from './supervisors.js';

/** Check intervals without an observation after which an agent counts as unseen. */
const UNSEEN_INTERVALS = 3;

/** Maximum number of agents per pass that are checked for blocking parts of a supervisor. */
const MAX_REQUESTED_PARTS = 200;

/** `missing` and `stuck` supervisors are restarted. */
export type SupervisorFound = 'moves' | 'missing' | 'stuck';

export interface SupervisionParts {
  readonly database: Database;
  /** Ensures that the agent has a supervisor that makes progress. @throws UnavailableError */
  readonly ensure: (agent: Supervised) => Promise<SupervisorFound>;
  /** Ends parts of a supervisor that cannot continue; true if any were found. @throws UnavailableError */
  readonly endStuckChildren: (agent: AgentRef) => Promise<boolean>;
  /** Milliseconds between two probes of a healthy agent. */
  readonly checkIntervalMs: number;
}

export interface Supervision {
  /** Agents without a supervisor: it was ended, or is missing in Temporal's store. */
  readonly missing: readonly string[];
  readonly stuck: readonly string[];
  /** Agents whose supervisor was blocked by a stuck repair or provisioning. */
  readonly blocked: readonly string[];
  readonly failed: readonly string[];
  /** Agents that should run but were not observed for three check intervals. */
  readonly unseen: readonly string[];
}

/**
 * Ensures that every agent of the host that has run or has an open operation has an unblocked supervisor, and
 * finds unobserved agents. Agents are checked independently. @throws UnavailableError without Temporal
 */
export async function ensureSupervisors(
  { database, ensure, endStuckChildren, checkIntervalMs }: SupervisionParts,
  host: string,
): Promise<Supervision> {
  const found = {
    missing: [] as string[],
    stuck: [] as string[],
    blocked: [] as string[],
    failed: [] as string[],
    unseen: [] as string[],
  };
  const mayBeBlocked: AgentRow[] = [];
  const seenSince = Date.now() - UNSEEN_INTERVALS * checkIntervalMs;
  for await (const agents of supervisedAgents(database, host)) {
    const ids = agents.map(({ id }) => id);
    const busy = await busyAgents(database, ids);
    await Promise.all(
      agents.map(async (agent) => {
        const isBusy = busy.has(agent.id);
        const isMissed = isUnseen(agent, seenSince);
        if (isMissed && !isBusy) found.unseen.push(agent.id);
        if (isMissed || isBusy || agent.watchdog?.state === 'repairing') mayBeBlocked.push(agent);
        try {
          const state = await ensure(supervisedOf(agent));
          if (state !== 'moves') found[state].push(agent.id);
        } catch (error) {
          if (error instanceof UnavailableError) throw error;
          found.failed.push(agent.id);
        }
      }),
    );
  }
  await Promise.all(
    someOf(mayBeBlocked).map(async (agent) => {
      try {
        if (await endStuckChildren(supervisedOf(agent))) found.blocked.push(agent.id);
      } catch (error) {
        if (error instanceof UnavailableError) throw error;
        if (!found.failed.includes(agent.id)) found.failed.push(agent.id);
      }
    }),
  );
  return found;
}

/** Returns the agents of one pass from a random one on, so that several passes check all. */
function someOf(agents: readonly AgentRow[]): readonly AgentRow[] {
  const first = Math.floor(Math.random() * agents.length);
  return [...agents.slice(first), ...agents.slice(0, first)].slice(0, MAX_REQUESTED_PARTS);
}

/** Reports whether an agent is unseen too long; crash loops are left to an operator. */
function isUnseen({ desired, observedAt, watchdog }: AgentRow, since: number): boolean {
  if (desired !== 'running' || watchdog?.state === 'crash_loop') return false;
  return observedAt === null || observedAt.getTime() < since;
}
