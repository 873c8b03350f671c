import { Op } from 'sequelize';
import type { AgentRef } from '../../types/agent-ref.js';
import { BadGatewayError } from '../../lib/errors.js';
import type { OwnerTurns } from '../chat/owner-turns.js';
import type { Database } from '../../platform/database/database.js';

/** The conversation for heartbeats of every agent; users can read it like any other. */
export const HEARTBEAT_CONVERSATION = 'heartbeat';

const PROMPT =
  'Heartbeat: look at what you were asked to keep an eye on. ' +
  'Do what is due and say what you did. If nothing is, answer HEARTBEAT_OK.';

const QUESTION = { conversation: HEARTBEAT_CONVERSATION, text: PROMPT, timeoutMs: 60_000 };

const PAGE = 50;

export interface AgentPage {
  readonly agents: readonly AgentRef[];
  /** The id after which the next page starts; undefined on the last page. */
  readonly next: string | undefined;
}

export class HeartbeatSender {
  readonly #database: Database;
  readonly #turns: Pick<OwnerTurns, 'ask'>;

  constructor(database: Database, turns: Pick<OwnerTurns, 'ask'>) {
    this.#database = database;
    this.#turns = turns;
  }

  /**
   * Records the start of a round for the setting of `setAt`, in ISO 8601. False if heartbeats were disabled
   * or rescheduled since; a worker then updates the schedule.
   */
  async begin(userId: string, setAt: string): Promise<boolean> {
    return this.#database.asUser(userId).transaction(async (db) => {
      const where = { userId, enabled: true, updatedAt: new Date(setAt) };
      const begun = await db.Heartbeat.update({ lastHeartbeatAt: new Date() }, { where });
      if (begun === 0) await db.Heartbeat.update({ scheduled: false }, { where: { userId } });
      return begun === 1;
    });
  }

  async runningAgents(userId: string, after: string): Promise<AgentPage> {
    const rows = await this.#database.asUser(userId).transaction((db) =>
      db.Agent.findAll({
        attributes: ['id', 'host'],
        where: { userId, id: { [Op.gt]: after }, desired: 'running', status: 'active' },
        order: [['id', 'ASC']],
        limit: PAGE,
      }),
    );
    const agents = rows.map(({ id, host }) => ({ agentId: id, userId, host }));
    return { agents, next: rows.length === PAGE ? rows.at(-1)?.id : undefined };
  }

  /**
   * Sends a heartbeat and stores both messages; skips an agent that no longer runs.
   * @throws BadGatewayError if the agent's gateway fails. Do not retry: the call may have cost tokens.
   */
  async send(agent: AgentRef, signal: AbortSignal): Promise<'answered' | 'skipped'> {
    const end = await this.#turns.ask(agent, QUESTION, signal);
    if (end.kind === 'failed') throw new BadGatewayError(end.reason);
    return end.kind;
  }
}
