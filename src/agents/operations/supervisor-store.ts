import { literal, Op, type WhereOptions } from 'sequelize';
import type { Database } from '../../platform/database/database.js';
import type { AgentRow, AgentStatus } from '../../platform/database/models.js';
import { NotFoundError } from '../../lib/errors.js';
import type { NotifiedEvent } from '../../types/notification.js';
import { requestNotification } from '../../notifications/outbox.js';
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
import { AGENT_IS_GONE, markDeleted } from './delete-agent.js';
import { recordAttempt, recordPast, recordTransition } from '../watchdog/watchdog-transitions.js';
import type {
  PastTransition,
  WatchdogCause,
  WatchdogMemory,
  WatchdogState,
  WatchdogTransition,
} from '../../types/watchdog.js';

export class NoPortFreeError extends Error {
  constructor(readonly host: string) {
    super(`No port is free on host ${host}: widen AGENT_PORT_RANGE`);
    this.name = 'NoPortFreeError';
  }
}

export interface OperationBegin {
  readonly id: string;
  readonly kind: OperationKind;
  readonly runId: string;
  readonly transition?: WatchdogTransition;
}

export interface OperationEnd {
  readonly id: string;
  readonly kind: OperationKind;
  readonly status: OperationEndStatus;
  readonly error: string | null;
  /** The operation failed and left the agent unchanged. */
  readonly unharmed?: boolean;
  readonly transition?: WatchdogTransition;
}

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

/** Evaluated at the time of the write, because earlier reads may be stale. */
const IS_NOT_AS_DESIRED = literal(`watchdog ->> 'state' IS DISTINCT FROM desired`);

const BRINGS_MEMORY: readonly OperationKind[] = ['reset-memory', 'restore', 'reset-empty'];

/** The supervisor's data of an agent. Every method is idempotent. */
export class SupervisorStore {
  readonly #database: Database;
  readonly #secrets: SecretBox;

  constructor(database: Database, secrets: SecretBox) {
    this.#database = database;
    this.#secrets = secrets;
  }

  /**
   * Reserves the lowest free port above `above` outside `taken`, or returns a higher present port. The range
   * comes from the host's row, because any host's worker may run this.
   * @throws NoPortFreeError, AgentGoneError; NotFoundError when the host has never registered
   */
  async reservePort(
    agent: AgentRef,
    above: number,
    taken: readonly PortRange[] = [],
  ): Promise<number> {
    // Ports of other tenants count too, so the query spans all tenants.
    return this.#database.asPlatform().transaction(async (db) => {
      await db.lock(`agent-ports:${agent.host}`);
      const row = await presentAgent(db, agent.agentId);
      if (!row) throw new AgentGoneError(agent.agentId);
      if (row.port !== null && row.port > above) return row.port;
      const host = await db.Host.findByPk(agent.host);
      if (!host)
        throw new NotFoundError(`No worker of host ${agent.host} has registered yet: start one`);
      const [free] = await db.query<{ port: number }>(
        `SELECT port FROM generate_series($first::int, $last::int) AS candidate(port)
         WHERE port > $above AND NOT port <@ $taken::int4multirange AND NOT EXISTS
           (SELECT FROM agents WHERE agents.host = $host AND agents.port = candidate.port)
         ORDER BY port LIMIT 1`,
        {
          first: host.firstPort,
          last: host.lastPort,
          above,
          host: agent.host,
          taken: `{${taken.map(({ first, last }) => `[${first},${last}]`).join()}}`,
        },
      );
      if (!free) throw new NoPortFreeError(agent.host);
      await db.Agent.update({ port: free.port }, { where: { id: row.id } });
      return free.port;
    });
  }

  /**
   * Frees the port of an agent that failed to start, unless the watchdog's memory is newer than `version`: a
   * late write must not free the port that the next operation has reserved.
   */
  async releasePort({ agentId, userId }: AgentRef, version: number): Promise<void> {
    await this.#database.asUser(userId).query(
      `UPDATE agents SET port = NULL, updated_at = now()
        WHERE id = $agentId AND deleted_at IS NULL
          AND COALESCE((watchdog ->> 'version')::int, 0) <= $version`,
      { agentId, version },
    );
  }

  /** Records that the container responds; a transition or operation end sets the status. */
  async recordRunning(agent: AgentRef): Promise<void> {
    const now = new Date();
    await this.#update(agent, { observedAt: now, startedAt: now });
  }

  /** Returns the state that a new supervisor starts with; null when the agent no longer exists. */
  async loadSupervisedState({ agentId, userId }: AgentRef): Promise<SupervisedState | null> {
    const found = await findAgent(this.#database.asUser(userId), agentId);
    if (!found) return null;
    return {
      desired: found.desired === 'running' ? 'running' : 'stopped',
      provisioned: found.startedAt !== null,
      watchdog: found.watchdog,
    };
  }

  /**
   * Marks the operation as running and applies its desired state and configuration, from then on for good.
   * Ends operations that can no longer begin.
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
      // An older operation must not undo a requested removal.
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
        const only: WhereOptions<AgentRow> =
          desired === 'deleted' ? {} : { desired: { [Op.ne]: 'deleted' } };
        await updateAgent(db, found.id, { ...(desired && { desired }), ...configured }, only);
        if (row.input?.credential) await beginCredential(db, row.id);
        if (operationRules(row.kind).onRefusal === 'withdrawn') await auditOperation(db, row);
      }
      if (operation.transition) await recordTransition(db, agent, operation.transition);
      return 'begun';
    });
  }

  /** Ends the operation and stores its effect on the agent, once. */
  async finishOperation(agent: AgentRef, operation: OperationEnd): Promise<void> {
    await this.#database.asUser(agent.userId).transaction(async (db) => {
      const { agentId } = agent;
      const { error, id, kind, status, transition, unharmed } = operation;
      const found = await presentAgent(db, agentId);
      if (!found) return;
      const finishedAt = new Date();
      const ended = await endOperations(db, agentId, { status, error }, { id });
      // A late or repeated call: the effect was stored when the operation ended.
      if (ended === 0 && kind !== 'delete') return;
      if (transition) await recordTransition(db, agent, transition);
      if (transition?.cause === 'memory_missing') {
        await requestNotification(db, { id: transition.id, agent, event: 'memory_missing' });
      }
      // The operation has ended, so no rollback can follow.
      if (kind === 'configure') {
        await updateAgent(db, agentId, { previousRelease: null });
        await settleCredentials(db, agentId);
      }
      if (status === 'failed') {
        if (!unharmed) {
          // After a lost supervisor, the next one may already have recorded the desired state.
          const only = transition ? {} : { [Op.and]: IS_NOT_AS_DESIRED };
          await updateAgent(db, agentId, { status: 'error', statusReason: error }, only);
        }
      } else if (status === 'succeeded' && kind === 'stop') {
        const row = await db.Operation.findByPk(id, { attributes: ['input'] });
        const statusReason = row?.input?.reason ?? null;
        const stopped = { status: 'stopped', statusReason, observedAt: finishedAt } as const;
        await updateAgent(db, agentId, stopped);
        if (statusReason !== null)
          await requestNotification(db, { id, agent, event: 'memory_full' });
      } else if (status === 'succeeded' && kind !== 'delete') {
        // A configuration is only stored for an agent that is stopped or never ran.
        const hasRun = { startedAt: { [Op.ne]: null } };
        const runs = { desired: 'running', ...hasRun };
        await updateAgent(db, agentId, { status: 'active', statusReason: null }, runs);
        // A new memory removes the reason for the stop, such as a full or missing memory.
        if (BRINGS_MEMORY.includes(kind)) {
          const isStopped = { desired: 'stopped', ...hasRun };
          await updateAgent(db, agentId, { status: 'stopped', statusReason: null }, isStopped);
        }
      } else if (status === 'succeeded') {
        await markDeleted(db, agentId, id, finishedAt);
      }
    });
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
      await recordPast(db, agent, past);
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
      if (!(await recordAttempt(db, agent, memory))) return;
      const { repairAttempts } = memory;
      const event = { event: 'repair_attempt', attempt: repairAttempts, maxAttempts } as const;
      await requestNotification(db, { id, agent, ...event });
    });
  }

  async #update({ agentId, userId }: AgentRef, values: Partial<AgentRow>): Promise<void> {
    const tenant = this.#database.asUser(userId);
    await tenant.transaction((db) => updateAgent(db, agentId, values));
  }
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
