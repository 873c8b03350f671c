import { Client, Connection } from '@temporalio/client';
import { Op } from 'sequelize';
import { poll } from '../../dev/poll.js';
import type { WatchdogMemory } from '../../src/types/watchdog.js';
import { Database } from '../../src/platform/database/database.js';
import type { AgentRow } from '../../src/platform/database/models.js';
import { FairLimiter } from '../../src/lib/fair-limiter.js';
import { PLATFORM_TASK_QUEUE, superviseAgentId } from '../../workflows/ids.js';
import { AGENT_PHASE, attributesOf } from '../../workflows/search-attributes.js';
import type { superviseAgent } from '../../workflows/supervise-agent.js';
import { agentRow } from './agent-row.js';
import type { BenchPlatform } from './platform.js';
import type { QuietAgent } from './quiet-host.js';
import { median } from './statistics.js';
import { within } from './within.js';

/** Milliseconds until the added supervisors watch: for all, and for each. */
const WATCH_MS = 120_000;
const WATCH_EACH_MS = 150;

const ANSWERS_MS = 60_000;

/** Limits the concurrent calls to Temporal. */
const limiter = new FairLimiter({ atOnce: 20, perOwner: 20 });

/** Number of supervisors whose history length is sampled. */
const SAMPLE = 100;

const HOST = 'local';

const WELL: WatchdogMemory = {
  version: 1,
  state: 'running',
  since: Date.now(),
  crashes: [],
  repairAttempts: 0,
  lastRepair: null,
};

/** Agents recorded as running, with their supervisors. */
export class SupervisedAgents {
  readonly #rows: AgentRow[] = [];

  readonly #userId: string;
  readonly #database: Database;
  readonly #client: Client;
  readonly #connection: Connection;

  private constructor(userId: string, database: Database, client: Client, connection: Connection) {
    this.#userId = userId;
    this.#database = database;
    this.#client = client;
    this.#connection = connection;
  }

  static async of(platform: BenchPlatform, userId: string): Promise<SupervisedAgents> {
    const connection = await Connection.connect({ address: platform.temporalAddress });
    const database = new Database(platform.databaseUrl, { maxConnections: 2 });
    return new SupervisedAgents(userId, database, new Client({ connection }), connection);
  }

  /** Inserts agents that ran and should run, one for each port; watching needs nothing else. */
  async insert(ports: readonly number[]): Promise<QuietAgent[]> {
    const made: AgentRow[] = [];
    for (let from = 0; from < ports.length; from += 200) {
      await this.#database.asUser(this.#userId).transaction(async (db) => {
        const values = ports.slice(from, from + 200).map((port) => agentOf(this.#userId, port));
        for (const value of values) made.push(await db.Agent.create(value));
      });
    }
    this.#rows.push(...made);
    return made.map(({ id, userId, port }) => ({ id, userId, port: port ?? 0 }));
  }

  /**
   * Starts the supervisors of these agents with the state that each would pass to its next run after a
   * healthy check.
   *
   * @returns seconds until the last supervisor watches.
   */
  async supervise(agents: readonly QuietAgent[]): Promise<number> {
    const started = performance.now();
    const start = async ({ id: agentId, userId }: QuietAgent) => {
      await this.#client.workflow.start<typeof superviseAgent>('superviseAgent', {
        workflowId: superviseAgentId(agentId),
        // A reconciliation pass may have started the supervisor already.
        workflowIdConflictPolicy: 'USE_EXISTING',
        taskQueue: PLATFORM_TASK_QUEUE,
        args: [
          {
            agentId,
            userId,
            host: HOST,
            desired: 'running',
            provisioned: true,
            observed: 'healthy',
            watchdog: WELL,
          },
        ],
        typedSearchAttributes: [
          ...attributesOf({ agentId, userId }),
          { key: AGENT_PHASE, value: 'running' },
        ],
      });
    };
    const timeoutMs = WATCH_MS + agents.length * WATCH_EACH_MS;
    const starts = agents.map((agent) => limiter.run({ owner: '' }, () => start(agent)));
    await within(`the starts of ${agents.length} supervisors`, timeoutMs, Promise.all(starts));
    const seen = () => within('the number of checked agents', ANSWERS_MS, this.#countSeen());
    const all = await poll(async () => ((await seen()) === this.#rows.length ? true : undefined), {
      timeoutMs,
      everyMs: 500,
    });
    if (!all) {
      const described = await within('an unchecked agent', ANSWERS_MS, this.#describeUnseen());
      throw new Error(
        `Only ${await seen()} of ${this.#rows.length} agents were checked within` +
          ` ${timeoutMs / 1_000} s. ${described}`,
      );
    }
    return (performance.now() - started) / 1_000;
  }

  /** Returns the median and the sum of the history events of a sample of supervisors. */
  async historyEvents(): Promise<{ median: number; sum: number; of: number }> {
    const every = Math.max(1, Math.floor(this.#rows.length / SAMPLE));
    const sample = this.#rows.filter((_, index) => index % every === 0);
    const lengths: number[] = [];
    const read = async ({ id }: { readonly id: string }) => {
      const { historyLength } = await this.#client.workflow
        .getHandle(superviseAgentId(id))
        .describe();
      lengths.push(historyLength);
    };
    const reads = sample.map((row) => limiter.run({ owner: '' }, () => read(row)));
    await within('the lengths of histories', ANSWERS_MS, Promise.all(reads));
    const sum = lengths.reduce((total, length) => total + length, 0);
    return { median: median(lengths), sum, of: lengths.length };
  }

  async close(): Promise<void> {
    await this.#database.close();
    await this.#connection.close();
  }

  /** Describes an agent that was not checked, and its supervisor. */
  async #describeUnseen(): Promise<string> {
    const agent = await this.#database
      .asPlatform()
      .transaction((db) => db.Agent.findOne({ where: { observedAt: null } }));
    if (!agent) return 'Other agents were checked as well.';
    const { id, port, status } = agent;
    const { historyLength, status: supervisor } = await this.#client.workflow
      .getHandle(superviseAgentId(id))
      .describe();
    return (
      `Agent ${id} at port ${port} is ${status}; its supervisor is ${supervisor.name}` +
      ` with ${historyLength} events.`
    );
  }

  /** Counts the agents with a first check, which records when an agent was seen. */
  async #countSeen(): Promise<number> {
    return this.#database.asPlatform().transaction((db) =>
      db.Agent.count({
        where: { observedAt: { [Op.ne]: null } },
      }),
    );
  }
}

const agentOf = (userId: string, port: number) => ({
  ...agentRow(userId, port),
  desired: 'running' as const,
  status: 'active' as const,
  startedAt: new Date(),
  watchdog: WELL,
  host: HOST,
  image: 'quiet',
});
