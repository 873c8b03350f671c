import { literal, Op } from 'sequelize';
import type { Database } from '../../platform/database/database.js';
import type { AgentRow } from '../../platform/database/models.js';
import { UnavailableError } from '../../lib/errors.js';
import type { AgentRef } from '../../types/agent-ref.js';
import { supervisedOf, type Supervised } from './supervisors.js';

/** Rows of one look, whose supervisors are asked after at the same time as far as Temporal is let. */
const PAGE = 200;

/** Agents with an operation that has not ended. */
const UNDER_WAY = '(SELECT agent_id FROM operations WHERE finished_at IS NULL)';

/** Check intervals after which an agent has not been seen for too long. */
const UNSEEN_INTERVALS = 3;

/** Agents of which one pass asks whether a part of a supervisor is in the way. */
const MAX_ASKED_FOR_PARTS = 200;

/** How a supervisor was found: `missing` and `stuck` ones are started anew. */
export type SupervisorFound = 'moves' | 'missing' | 'stuck';

export interface SupervisionParts {
  readonly database: Database;
  /** Makes sure that the agent has a supervisor that moves. @throws UnavailableError */
  readonly ensure: (agent: Supervised) => Promise<SupervisorFound>;
  /**
   * Ends parts of the agent's supervisor, or of one before, that cannot go on. @returns whether there was
   * any. @throws UnavailableError
   */
  readonly endStuckParts: (agent: AgentRef) => Promise<boolean>;
  /** Milliseconds between two checks of a healthy agent. */
  readonly checkIntervalMs: number;
}

/** Ids of agents whose supervision was not as it should be. */
export interface Supervision {
  /** They had no supervisor: it was ended by somebody, or is not in Temporal's store any more. */
  readonly missing: readonly string[];
  /** Their supervisor could not take another step. */
  readonly stuck: readonly string[];
  /** A repair or a provisioning that could not go on was in the way of their supervisor. */
  readonly blocked: readonly string[];
  /** Of these nothing is known. */
  readonly failed: readonly string[];
  /** They should run, and nobody has seen them for three check intervals. */
  readonly unseen: readonly string[];
}

/**
 * Makes sure that every agent of the host that has ever run, or has an operation under way, has a
 * supervisor that moves and has nothing in its way, and finds those that are not seen all the same. Each by
 * itself: what is wrong with one keeps no other waiting.
 *
 * @throws UnavailableError when Temporal cannot be reached.
 */
export async function ensureSupervisors(
  { database, ensure, endStuckParts, checkIntervalMs }: SupervisionParts,
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
    const busy = await withOpenOperation(database, agents);
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
        if (await endStuckParts(supervisedOf(agent))) found.blocked.push(agent.id);
      } catch (error) {
        if (error instanceof UnavailableError) throw error;
        if (!found.failed.includes(agent.id)) found.failed.push(agent.id);
      }
    }),
  );
  return found;
}

/** As many as one pass asks about, from a random one on: each has its turn in some pass. */
function someOf(agents: readonly AgentRow[]): readonly AgentRow[] {
  const first = Math.floor(Math.random() * agents.length);
  return [...agents.slice(first), ...agents.slice(0, first)].slice(0, MAX_ASKED_FOR_PARTS);
}

/** One that is left to an operator is not looked at. */
function isUnseen({ desired, observedAt, watchdog }: AgentRow, since: number): boolean {
  if (desired !== 'running' || watchdog?.state === 'crash_loop') return false;
  return observedAt === null || observedAt.getTime() < since;
}

/**
 * One that has never run, or is to be removed, has a supervisor for its operations alone, which start it;
 * one that is stuck keeps them from their end.
 */
async function* supervisedAgents(database: Database, host: string): AsyncGenerator<AgentRow[]> {
  for (let after = ''; ;) {
    const agents = await database.asPlatform().transaction((db) =>
      db.Agent.findAll({
        where: {
          host,
          deletedAt: null,
          id: { [Op.gt]: after },
          [Op.or]: [
            { desired: ['running', 'stopped'], startedAt: { [Op.ne]: null } },
            { id: { [Op.in]: literal(UNDER_WAY) } },
          ],
        },
        order: [['id', 'ASC']],
        limit: PAGE,
      }),
    );
    if (agents.length > 0) yield agents;
    const last = agents.at(-1);
    if (!last || agents.length < PAGE) return;
    after = last.id;
  }
}

async function withOpenOperation(
  database: Database,
  agents: readonly AgentRow[],
): Promise<ReadonlySet<string>> {
  const open = await database.asPlatform().transaction((db) =>
    db.Operation.findAll({
      where: { agentId: agents.map(({ id }) => id), finishedAt: null },
      attributes: ['agentId'],
    }),
  );
  return new Set(open.map(({ agentId }) => agentId));
}
