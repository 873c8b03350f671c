import type { Database, TenantTransaction } from '../../platform/database/database.js';
import type { AgentRow, AgentStatus, CrashRecord } from '../../platform/database/models.js';
import type { NotifiedEvent } from '../../types/notification.js';
import { requestNotification } from '../../notifications/outbox.js';
import type { AgentRef } from '../../types/agent-ref.js';
import { AgentGoneError, findAgent, presentAgent, updateAgent } from '../agents/agents.js';
import { LastSeen } from '../agents/last-seen.js';
import type {
  PastTransition,
  WatchdogCause,
  WatchdogMemory,
  WatchdogState,
  WatchdogTransition,
} from '../../types/watchdog.js';
import type { Observation } from './observation.js';

export interface SupervisedState {
  readonly desired: 'running' | 'stopped';
  readonly provisioned: boolean;
  readonly watchdog: WatchdogMemory | null;
}

export interface RepairAttempt {
  /** A unique id made by the workflow. */
  readonly id: string;
  /** The watchdog's memory once this attempt has begun. */
  readonly memory: WatchdogMemory;
  readonly maxAttempts: number;
}

/** API status for each watchdog state. The results of operations are set when they end. */
const STATUS: Partial<Record<WatchdogState, AgentStatus>> = {
  starting: 'pending',
  running: 'active',
  degraded: 'error',
  repairing: 'error',
  crash_loop: 'error',
};

/** API status for the watchdog's actions on an agent that should be stopped. */
const STATUS_OF_STOP: Partial<Record<WatchdogCause, AgentStatus>> = {
  stop_refused: 'error',
  stopped: 'stopped',
};

/** Maximum number of transitions kept per agent; older ones are deleted. */
const MAX_KEPT = 500;

/** A newer transition of the agent is already stored, so the writer's state is stale. */
export class SupersededError extends Error {
  override readonly name = 'SupersededError';

  constructor(readonly agentId: string) {
    super('A newer state of the agent is already stored');
  }
}

const REMEMBER = `
  UPDATE agents SET watchdog = $memory::jsonb, updated_at = now()
  WHERE id = $agentId AND deleted_at IS NULL
    AND COALESCE((watchdog ->> 'version')::int, 0) < $version
  RETURNING id`;

const REMEMBER_ATTEMPT = `
  UPDATE agents SET watchdog = $memory::jsonb, updated_at = now()
  WHERE id = $agentId AND deleted_at IS NULL
    AND COALESCE((watchdog ->> 'version')::int, 0) = $version
    AND COALESCE((watchdog ->> 'lastRepair')::numeric, 0) < $lastRepair
  RETURNING id`;

/** The watchdog's view of agents: memory, transitions and observations. Every method is idempotent. */
export class WatchdogStore {
  readonly #database: Database;
  readonly #lastSeen: LastSeen;

  constructor(database: Database) {
    this.#database = database;
    this.#lastSeen = new LastSeen(database);
  }

  /** Returns the state that a new supervisor starts with; null when the agent no longer exists. */
  async load({ agentId, userId }: AgentRef): Promise<SupervisedState | null> {
    const found = await findAgent(this.#database.asUser(userId), agentId);
    if (!found) return null;
    return {
      desired: found.desired === 'running' ? 'running' : 'stopped',
      provisioned: found.startedAt !== null,
      watchdog: found.watchdog,
    };
  }

  /** Records that the container responds; a transition or operation end sets the status. */
  async recordRunning(agent: AgentRef): Promise<void> {
    const now = new Date();
    await this.#update(agent, { observedAt: now, startedAt: now });
  }

  /** Records an unchanged observation: only its time, about a second later. */
  recordSeen({ agentId }: AgentRef, { observedAt }: Observation): void {
    this.#lastSeen.record(agentId, observedAt);
  }

  async recordTransition(agent: AgentRef, made: WatchdogTransition): Promise<void> {
    await this.#database.asUser(agent.userId).transaction(async (db) => {
      const { id, cause, memory, reason: statusReason } = made;
      if (!(await recordTransition(db, agent, made))) return;
      const event = eventOf(made);
      if (event) await requestNotification(db, { id, agent, ...event });
      const ofStop = STATUS_OF_STOP[cause];
      const status = ofStop ?? STATUS[memory.state];
      if (!status) return;
      const seen = { status, statusReason, observedAt: new Date(memory.since) };
      await updateAgent(db, agent.agentId, seen, { desired: ofStop ? 'stopped' : 'running' });
    });
  }

  /** Stores the transitions that the agent's host made by itself; the present state stays. */
  async recordPast(agent: AgentRef, past: readonly PastTransition[]): Promise<void> {
    const [first] = past;
    if (!first) return;
    await this.#database.asUser(agent.userId).transaction(async (db) => {
      await db.WatchdogTransition.bulkCreate(
        past.map(({ id, from, cause, reason, memory, crash }) => ({
          id,
          agentId: agent.agentId,
          userId: agent.userId,
          fromState: from,
          toState: memory.state,
          cause,
          reason,
          at: new Date(memory.since),
          // The last log lines are left out: redacting them needs the agent's secrets.
          crash: crash ? { ...crash, lastLines: [] } : null,
        })),
        { ignoreDuplicates: true },
      );
      await forgetOld(db, agent.agentId);
      const times = past.flatMap(({ memory }) => (memory.state === 'degraded' ? memory.since : []));
      if (times.length === 0) return;
      const [from, until] = [Math.min(...times), Math.max(...times)];
      const event = { event: 'dealt_with_by_host', crashes: times.length, from, until } as const;
      await requestNotification(db, { id: `past-${first.id}`, agent, ...event });
    });
  }

  async recordRepairAttempt(agent: AgentRef, attempt: RepairAttempt): Promise<void> {
    const { id, memory, maxAttempts } = attempt;
    await this.#database.asUser(agent.userId).transaction(async (db) => {
      const { agentId } = agent;
      const { version, lastRepair, repairAttempts } = memory;
      const values = { agentId, memory: JSON.stringify(memory), version, lastRepair };
      if ((await db.query(REMEMBER_ATTEMPT, values)).length === 0) {
        if (!(await presentAgent(db, agentId))) throw new AgentGoneError(agentId);
        return;
      }
      const event = { event: 'repair_attempt', attempt: repairAttempts, maxAttempts } as const;
      await requestNotification(db, { id, agent, ...event });
    });
  }

  /** Adds the details of a crash to the transition it caused. */
  async recordCrash(agent: AgentRef, transitionId: string, crash: CrashRecord): Promise<void> {
    const tenant = this.#database.asUser(agent.userId);
    await tenant.transaction((db) =>
      db.WatchdogTransition.update({ crash }, { where: { id: transitionId } }),
    );
  }

  async #update({ agentId, userId }: AgentRef, values: Partial<AgentRow>): Promise<void> {
    const tenant = this.#database.asUser(userId);
    await tenant.transaction((db) => updateAgent(db, agentId, values));
  }
}

/**
 * Stores a transition and the resulting watchdog memory, once; false if the transition is stored already.
 * @throws AgentGoneError, SupersededError
 */
export async function recordTransition(
  db: TenantTransaction,
  { agentId, userId }: AgentRef,
  made: WatchdogTransition,
): Promise<boolean> {
  const { WatchdogTransition: Transitions } = db;
  const { id, from, cause, reason, memory } = made;
  const { version } = memory;
  const written = await db.query(REMEMBER, { agentId, memory: JSON.stringify(memory), version });
  if (written.length === 0) {
    if (!(await presentAgent(db, agentId))) throw new AgentGoneError(agentId);
    if (await Transitions.findByPk(id, { attributes: ['id'] })) return false;
    throw new SupersededError(agentId);
  }
  const at = new Date(memory.since);
  const change = { fromState: from, toState: memory.state, cause, reason, at };
  await Transitions.create({ id, agentId, userId, ...change });
  await forgetOld(db, agentId);
  return true;
}

async function forgetOld({ WatchdogTransition: Transitions }: TenantTransaction, agentId: string) {
  const old = await Transitions.findAll({
    where: { agentId },
    attributes: ['id'],
    order: [['at', 'DESC']],
    offset: MAX_KEPT,
    limit: MAX_KEPT,
  });
  if (old.length > 0) await Transitions.destroy({ where: { id: old.map((row) => row.id) } });
}

function eventOf({ cause, memory }: WatchdogTransition): NotifiedEvent | undefined {
  if (cause === 'memory_missing') return { event: 'memory_missing' };
  if (cause === 'stop_refused') return { event: 'stop_refused' };
  if (memory.state === 'degraded') return { event: 'degraded' };
  if (memory.state !== 'crash_loop') return undefined;
  return {
    event: 'crash_loop',
    crashes: cause === 'repair_failed' ? 0 : memory.crashes.length,
  };
}
