import { Op, QueryTypes } from 'sequelize';
import type { Database } from '../database/database.js';
import { NotFoundError } from '../errors.js';
import type { AgentRef } from './agent-ref.js';
import type { Observation } from './observation.js';
import type { OperationKind } from './operation-rules.js';

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
}

export interface OperationEnd {
  readonly id: string;
  readonly kind: OperationKind;
  readonly status: 'succeeded' | 'failed' | 'cancelled';
  readonly error: string | null;
}

/** What the operation wants from here on, also when it fails. */
const DESIRED: Partial<Record<OperationKind, 'running' | 'stopped' | 'deleted'>> = {
  provision: 'running',
  start: 'running',
  restart: 'running',
  stop: 'stopped',
  delete: 'deleted',
};

/**
 * What the supervisor writes down of one agent. Every method may be called again with the same
 * arguments: the second call changes nothing.
 */
export class AgentRecords {
  constructor(
    private readonly database: Database,
    private readonly ports: { readonly first: number; readonly last: number },
  ) {}

  /**
   * Gives the agent the lowest free port of its host above `above`; the one it has when `above` is 0.
   *
   * @throws NoPortFreeError
   */
  async reservePort(agent: AgentRef, above: number): Promise<number> {
    // Other tenants' ports count too, so this looks across tenants.
    return this.database.asPlatform().transaction(async (transaction) => {
      const { Agent } = this.database.models;
      const { sequelize } = this.database;
      await sequelize.query('SELECT pg_advisory_xact_lock(hashtext($host))', {
        bind: { host: `agent-ports:${agent.host}` },
        transaction,
      });
      const row = await Agent.findByPk(agent.agentId, { transaction });
      if (!row) throw new NotFoundError();
      if (row.port !== null && row.port > above) return row.port;
      const [free] = await sequelize.query<{ port: number }>(
        `SELECT port FROM generate_series($first::int, $last::int) AS candidate(port)
         WHERE port > $above AND NOT EXISTS
           (SELECT FROM agents WHERE agents.host = $host AND agents.port = candidate.port)
         ORDER BY port LIMIT 1`,
        {
          bind: { ...this.ports, above, host: agent.host },
          type: QueryTypes.SELECT,
          transaction,
        },
      );
      if (!free) throw new NoPortFreeError(agent.host);
      await row.update({ port: free.port }, { transaction });
      return free.port;
    });
  }

  async releasePort(agent: AgentRef): Promise<void> {
    await this.update(agent, { port: null });
  }

  /**
   * The container answers. While an operation runs, the status waits for its end: who reads that the
   * agent is up can ask for the next operation.
   */
  async recordRunning(agent: AgentRef): Promise<void> {
    await this.database.asUser(agent.userId).transaction(async (transaction) => {
      const { Agent, Operation } = this.database.models;
      const { agentId } = agent;
      const running = await Operation.count({ where: { agentId, status: 'running' }, transaction });
      const now = new Date();
      await Agent.update(
        {
          ...(running === 0 && { status: 'active' as const, statusReason: null }),
          observedAt: now,
          startedAt: now,
        },
        { where: { id: agentId, deletedAt: null }, transaction },
      );
    });
  }

  /** Puts down what was seen. An agent that is being removed is left as it is. */
  async recordObservation(agent: AgentRef, seen: Observation): Promise<void> {
    await this.update(agent, {
      status: seen.health === 'healthy' ? 'active' : 'error',
      statusReason: seen.reason,
      observedAt: new Date(seen.observedAt),
    });
  }

  /**
   * Marks the operation as running, and applies what it brings: what is desired, a configuration.
   * From here on it is carried out. `withdrawn` when whoever asked has taken it back meanwhile,
   * `gone` when the agent is no more.
   */
  async beginOperation(
    agent: AgentRef,
    operation: OperationBegin,
  ): Promise<'begun' | 'withdrawn' | 'gone'> {
    return this.database.asUser(agent.userId).transaction(async (transaction) => {
      const { Agent, Operation } = this.database.models;
      const where = { id: agent.agentId, deletedAt: null };
      const found = await Agent.findOne({ where, attributes: ['desired'], transaction });
      if (!found) return 'gone';
      // Its removal was asked for meanwhile, and must not be taken back by what is older.
      if (found.desired === 'deleted' && operation.kind !== 'delete') return 'withdrawn';
      const row = await Operation.findByPk(operation.id, { transaction, lock: true });
      if (!row || row.finishedAt !== null) return 'withdrawn';
      if (row.status === 'requested') {
        await row.update({ status: 'running', runId: operation.runId }, { transaction });
        const desired = DESIRED[operation.kind];
        await Agent.update({ ...(desired && { desired }), ...row.input }, { where, transaction });
      }
      return 'begun';
    });
  }

  async finishOperation(agent: AgentRef, operation: OperationEnd): Promise<void> {
    await this.database.asUser(agent.userId).transaction(async (transaction) => {
      const { Agent, AgentSecret, Message, Operation } = this.database.models;
      const finishedAt = new Date();
      await Operation.update(
        { status: operation.status, error: operation.error, finishedAt },
        { where: { id: operation.id, status: ['requested', 'running'] }, transaction },
      );
      const where = { id: agent.agentId, deletedAt: null };
      if (operation.status === 'failed') {
        await Agent.update(
          { status: 'error', statusReason: operation.error },
          { where, transaction },
        );
      } else if (operation.status === 'succeeded' && operation.kind === 'stop') {
        await Agent.update(
          { status: 'stopped', statusReason: null, observedAt: finishedAt },
          { where, transaction },
        );
      } else if (operation.status === 'succeeded' && operation.kind !== 'delete') {
        // An agent that is stopped, or never came up, only takes note of a configuration.
        await Agent.update(
          { status: 'active', statusReason: null },
          { where: { ...where, desired: 'running', startedAt: { [Op.ne]: null } }, transaction },
        );
      } else if (operation.status === 'succeeded') {
        const ofAgent = { where: { agentId: agent.agentId }, transaction };
        await AgentSecret.destroy(ofAgent);
        await Message.destroy(ofAgent);
        await Operation.update(
          { status: 'cancelled', finishedAt },
          {
            where: { agentId: agent.agentId, finishedAt: null, id: { [Op.ne]: operation.id } },
            transaction,
          },
        );
        await Agent.update(
          { desired: 'deleted', port: null, config: {}, deletedAt: finishedAt },
          { where, transaction },
        );
      }
    });
  }

  private async update(agent: AgentRef, values: Record<string, unknown>): Promise<void> {
    await this.database.asUser(agent.userId).transaction(async (transaction) => {
      await this.database.models.Agent.update(values, {
        where: { id: agent.agentId, deletedAt: null },
        transaction,
      });
    });
  }
}
