import { literal, Op, type WhereOptions } from 'sequelize';
import type { Database } from '../../platform/database/database.js';
import type { AgentRow, AgentStatus } from '../../platform/database/models.js';
import { NotFoundError } from '../../lib/errors.js';
import type { NotifiedEvent } from '../../types/notification.js';
import { putInOutbox } from '../../notifications/outbox.js';
import type { SecretBox } from '../../platform/secrets/secret-box.js';
import { beginCredential, settleCredentials } from '../credentials/agent-credentials.js';
import type { AgentRef } from '../../types/agent-ref.js';
import type { PortRange } from '../agents/agent-subnet.js';
import { withSkill } from '../model/agent-skills.js';
import { AgentGoneError, findAgent, presentAgent, updateAgent } from '../agents/agents.js';
import { openInput, type RequestedInput } from './operation-input.js';
import {
  operationRules,
  type OperationEndStatus,
  type OperationKind,
} from '../../types/operation-kinds.js';
import { auditOperation, endOperations } from './operations.js';
import { releaseOf } from '../memory/previous-release.js';
import { AGENT_IS_GONE, buryAgent } from './tombstone.js';
import { recordAttempt, recordPast, recordTransition } from '../watchdog/watchdog-transitions.js';
import type {
  PastTransition,
  WatchdogCause,
  WatchdogMemory,
  WatchdogState,
  WatchdogTransition,
} from '../../types/watchdog.js';

/** The range of ports is used up on this host. */
export class NoPortFreeError extends Error {
  constructor(readonly host: string) {
    super(`No port is free on host ${host}; widen AGENT_PORT_RANGE`);
    this.name = 'NoPortFreeError';
  }
}

export interface OperationBegin {
  readonly id: string;
  readonly kind: OperationKind;
  readonly runId: string;
  /** What the operation changes for the watchdog when it begins. */
  readonly transition?: WatchdogTransition;
}

export interface OperationEnd {
  readonly id: string;
  readonly kind: OperationKind;
  readonly status: OperationEndStatus;
  readonly error: string | null;
  /** It failed, and the agent is as it was before. */
  readonly unharmed?: boolean;
  /** What the end of the operation changes for the watchdog. */
  readonly transition?: WatchdogTransition;
}

/** What is known of an agent, as far as its supervisor goes by it. */
export interface SupervisedState {
  readonly desired: 'running' | 'stopped';
  /** Whether it has ever run. */
  readonly provisioned: boolean;
  /** Null until it ran for the first time. */
  readonly watchdog: WatchdogMemory | null;
}

export interface RepairAttempt {
  /** Unique; made by the workflow. */
  readonly id: string;
  /** What is remembered with this attempt begun. */
  readonly memory: WatchdogMemory;
  readonly maxAttempts: number;
}

/**
 * What the watchdog's states mean for the status in the API. What an operation brings about
 * is told by its end.
 */
const STATUS: Partial<Record<WatchdogState, AgentStatus>> = {
  starting: 'pending',
  running: 'active',
  degraded: 'error',
  repairing: 'error',
  crash_loop: 'error',
};

/** The same of what the watchdog does to an agent that should not run. */
const STATUS_OF_STOP: Partial<Record<WatchdogCause, AgentStatus>> = {
  stop_refused: 'error',
  stopped: 'stopped',
};

/** Judged when the row is written, whatever was read before. */
const IS_NOT_AS_DESIRED = literal(`watchdog ->> 'state' IS DISTINCT FROM desired`);

const BRINGS_MEMORY: readonly OperationKind[] = ['reset-memory', 'restore', 'begin-anew'];

/**
 * What the supervisor writes down of one agent. Every method may be called again with the same
 * arguments: the second call changes nothing.
 */
export class SupervisorStore {
  readonly #database: Database;
  readonly #secrets: SecretBox;

  constructor(database: Database, secrets: SecretBox) {
    this.#database = database;
    this.#secrets = secrets;
  }

  /**
   * Gives the agent the lowest free port of its host above `above`; the one it has when `above` is 0.
   *
   * The range is the host's own, as its worker wrote it down: any host's worker may be at work here.
   *
   * @param taken known to be of no use on the host
   * @throws NoPortFreeError
   * @throws AgentGoneError
   * @throws NotFoundError when its host was never heard of
   */
  async reservePort(
    agent: AgentRef,
    above: number,
    taken: readonly PortRange[] = [],
  ): Promise<number> {
    // Other tenants' ports count too, so this looks across tenants.
    return this.#database.asPlatform().transaction(async (db) => {
      await db.lock(`agent-ports:${agent.host}`);
      const row = await presentAgent(db, agent.agentId);
      if (!row) throw new AgentGoneError(agent.agentId);
      if (row.port !== null && row.port > above) return row.port;
      const host = await db.Host.findByPk(agent.host);
      if (!host) throw new NotFoundError(`No worker of host ${agent.host} has come up yet`);
      const [free] = await db.query<{ port: number }>(
        `SELECT port FROM generate_series($first::int, $last::int) AS candidate(port)
         WHERE port > $above AND NOT port <@ $taken::int4multirange AND NOT EXISTS
           (SELECT FROM agents WHERE agents.host = $host AND agents.port = candidate.port)
         ORDER BY port LIMIT 1`,
        {
          ...{ first: host.firstPort, last: host.lastPort, above, host: agent.host },
          taken: `{${taken.map(({ first, last }) => `[${first},${last}]`).join()}}`,
        },
      );
      if (!free) throw new NoPortFreeError(agent.host);
      await db.Agent.update({ port: free.port }, { where: { id: row.id } });
      return free.port;
    });
  }

  /**
   * Frees the port of an agent that has not come up.
   *
   * @param version of what its watchdog remembers: a write that comes late, when the next operation has
   *   begun, takes no port from that.
   */
  async releasePort({ agentId, userId }: AgentRef, version: number): Promise<void> {
    await this.#database.asUser(userId).query(
      `UPDATE agents SET port = NULL, updated_at = now()
        WHERE id = $agentId AND deleted_at IS NULL
          AND COALESCE((watchdog ->> 'version')::int, 0) <= $version`,
      { agentId, version },
    );
  }

  /** The container answers. The status is told by what follows: a change, or an operation's end. */
  async recordRunning(agent: AgentRef): Promise<void> {
    const now = new Date();
    await this.#update(agent, { observedAt: now, startedAt: now });
  }

  /** What a supervisor that is made anew has to know; null when the agent is no more. */
  async takeUp({ agentId, userId }: AgentRef): Promise<SupervisedState | null> {
    const found = await findAgent(this.#database.asUser(userId), agentId);
    if (!found) return null;
    return {
      desired: found.desired === 'running' ? 'running' : 'stopped',
      provisioned: found.startedAt !== null,
      watchdog: found.watchdog,
    };
  }

  /**
   * Marks the operation as running, and applies what it brings: what is desired, a configuration.
   * From here on it is carried out. `withdrawn` when whoever asked has taken it back meanwhile, or it
   * has ended; `gone` when the agent is no more. What cannot begin any more is ended here.
   */
  async beginOperation(
    agent: AgentRef,
    operation: OperationBegin,
  ): Promise<'begun' | 'withdrawn' | 'gone'> {
    return this.#database.asUser(agent.userId).transaction(async (db) => {
      const { agentId } = agent;
      const found = await presentAgent(db, agentId);
      if (!found) {
        await endOperations(db, agentId, { status: 'cancelled', error: AGENT_IS_GONE }, 'all');
        return 'gone';
      }
      // Its removal was asked for meanwhile, and must not be taken back by what is older.
      if (found.desired === 'deleted' && operation.kind !== 'delete') {
        await endOperations(db, agentId, { status: 'cancelled', error: AGENT_IS_GONE }, operation);
        return 'withdrawn';
      }
      const row = await db.Operation.findByPk(operation.id, { lock: true });
      if (!row || row.finishedAt !== null) return 'withdrawn';
      if (row.status === 'requested') {
        await db.Operation.update(
          { status: 'running', runId: operation.runId },
          { where: { id: row.id } },
        );
        const { desired } = operationRules(operation.kind);
        const configured = operation.kind === 'configure' && {
          ...configurationIn(openInput(this.#secrets, row), found.config),
          previousRelease: releaseOf(found, operation.id),
        };
        // Its removal may be asked for right now, as it may have been before.
        const only: WhereOptions<AgentRow> =
          desired === 'deleted' ? {} : { desired: { [Op.ne]: 'deleted' } };
        await updateAgent(db, found.id, { ...(desired && { desired }), ...configured }, only);
        if (row.input?.credential) await beginCredential(db, row.id);
        if (operationRules(row.kind).refused === 'withdrawn') await auditOperation(db, row);
      }
      if (operation.transition) await recordTransition(db, agent, operation.transition);
      return 'begun';
    });
  }

  /** Marks the operation as ended, and puts down what it has made of the agent; once. */
  async finishOperation(agent: AgentRef, operation: OperationEnd): Promise<void> {
    await this.#database.asUser(agent.userId).transaction(async (db) => {
      const { agentId } = agent;
      const { error, id, kind, status, transition, unharmed } = operation;
      const found = await presentAgent(db, agentId);
      if (!found) return;
      const finishedAt = new Date();
      const ended = await endOperations(db, agentId, { status, error }, { id });
      // Late, or again: what it has made of the agent was written with its end.
      if (ended === 0 && kind !== 'delete') return;
      if (transition) await recordTransition(db, agent, transition);
      if (transition?.cause === 'memory_missing') {
        await putInOutbox(db, { id: transition.id, agent, event: 'memory_missing' });
      }
      // An agent that does not run has nothing to go back to.
      if (kind === 'configure') {
        await updateAgent(db, agentId, { previousRelease: null });
        await settleCredentials(db, agentId);
      }
      if (status === 'failed') {
        if (!unharmed) {
          // Of one whose supervisor was ended, the next one may have told, at this moment as well, that the
          // agent is as it should be.
          const only = transition ? {} : { [Op.and]: IS_NOT_AS_DESIRED };
          await updateAgent(db, agentId, { status: 'error', statusReason: error }, only);
        }
      } else if (status === 'succeeded' && kind === 'stop') {
        const row = await db.Operation.findByPk(id, { attributes: ['input'] });
        const statusReason = row?.input?.reason ?? null;
        const stopped = { status: 'stopped', statusReason, observedAt: finishedAt } as const;
        await updateAgent(db, agentId, stopped);
        if (statusReason !== null) await putInOutbox(db, { id, agent, event: 'memory_full' });
      } else if (status === 'succeeded' && kind !== 'delete') {
        // An agent that is stopped, or never came up, only takes note of a configuration.
        const hasRun = { startedAt: { [Op.ne]: null } };
        const runs = { desired: 'running', ...hasRun };
        await updateAgent(db, agentId, { status: 'active', statusReason: null }, runs);
        // What it was stopped for, or could not do without, is over with the memory that it had.
        if (BRINGS_MEMORY.includes(kind)) {
          const isStopped = { desired: 'stopped', ...hasRun };
          await updateAgent(db, agentId, { status: 'stopped', statusReason: null }, isStopped);
        }
      } else if (status === 'succeeded') {
        await buryAgent(db, agentId, id, finishedAt);
      }
    });
  }

  /** Puts down a change that the watchdog made, what it means for the status, and for operators. */
  async recordTransition(agent: AgentRef, made: WatchdogTransition): Promise<void> {
    await this.#database.asUser(agent.userId).transaction(async (db) => {
      const { id, cause, memory, reason: statusReason } = made;
      if (!(await recordTransition(db, agent, made))) return;
      const event = eventOf(made);
      if (event) await putInOutbox(db, { id, agent, ...event });
      const ofStop = STATUS_OF_STOP[cause];
      const status = ofStop ?? STATUS[memory.state];
      if (!status) return;
      const seen = { status, statusReason, observedAt: new Date(memory.since) };
      await updateAgent(db, agent.agentId, seen, { desired: ofStop ? 'stopped' : 'running' });
    });
  }

  /**
   * Puts down what the agent's host did by itself, and when, and tells operators; what the agent is
   * now stays.
   */
  async recordPast(agent: AgentRef, past: readonly PastTransition[]): Promise<void> {
    const [first] = past;
    if (!first) return;
    await this.#database.asUser(agent.userId).transaction(async (db) => {
      await recordPast(db, agent, past);
      const times = past.flatMap(({ memory }) => (memory.state === 'degraded' ? memory.since : []));
      if (times.length === 0) return;
      const [from, until] = [Math.min(...times), Math.max(...times)];
      const event = { event: 'dealt_with_by_host', crashes: times.length, from, until } as const;
      await putInOutbox(db, { id: `past-${first.id}`, agent, ...event });
    });
  }

  /** Puts down how far a repair is, and tells operators. */
  async recordRepairAttempt(agent: AgentRef, attempt: RepairAttempt): Promise<void> {
    const { id, memory, maxAttempts } = attempt;
    await this.#database.asUser(agent.userId).transaction(async (db) => {
      if (!(await recordAttempt(db, agent, memory))) return;
      const { repairAttempts } = memory;
      const event = { event: 'repair_attempt', attempt: repairAttempts, maxAttempts } as const;
      await putInOutbox(db, { id, agent, ...event });
    });
  }

  async #update({ agentId, userId }: AgentRef, values: Partial<AgentRow>): Promise<void> {
    const tenant = this.#database.asUser(userId);
    await tenant.transaction((db) => updateAgent(db, agentId, values));
  }
}

/** What operators are told of a change, if anything. */
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

/** The columns that a `configure` sets. */
function configurationIn(
  input: RequestedInput,
  before: Record<string, unknown>,
): Partial<AgentRow> {
  const { plan, aiProvider, model, config, skill } = input;
  return {
    ...(plan && { plan }),
    ...(aiProvider !== undefined && { aiProvider }),
    ...(model !== undefined && { model }),
    ...(config && { config }),
    ...(skill && { config: withSkill(before, skill) }),
  };
}
