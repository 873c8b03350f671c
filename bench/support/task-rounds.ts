import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { createAgentSecrets } from '../../src/agents/credentials/agent-secrets.js';
import type { Database } from '../../src/platform/database/database.js';
import type { SecretBox } from '../../src/platform/secrets/secret-box.js';
import { dueMinute, roundTimeoutMs } from './due-minute.js';
import type { QuietAgent } from './quiet-host.js';

const POLL_MS = 20;
const CHUNK = 1_000;
const SCHEDULED_TIMEOUT_MS = 600_000;

interface TaskOfAgent {
  readonly id: string;
  readonly agentId: string;
  readonly userId: string;
}

/** Tasks of agents that answer at once, one for each agent. A worker makes their schedules. */
export class TaskRounds {
  readonly #database: Database;
  readonly #tasks: readonly TaskOfAgent[];

  private constructor(database: Database, tasks: readonly TaskOfAgent[]) {
    this.#database = database;
    this.#tasks = tasks;
  }

  /** Stores a plan for the owner, and tokens and a task for each agent. */
  static async open(
    database: Database,
    secrets: SecretBox,
    agents: readonly QuietAgent[],
  ): Promise<TaskRounds> {
    const userId = agents[0]?.userId ?? '';
    await database.asPlatform().transaction(async (db) => {
      await db.Subscription.create({
        userId,
        plan: 'network',
        status: 'active',
        source: 'operator',
        processorId: null,
        periodStart: new Date(),
        periodEnd: null,
      });
      for (const agent of agents) await createAgentSecrets(db, secrets, agent);
    });
    const tasks = agents.map(({ id: agentId }) => ({ id: randomUUID(), agentId, userId }));
    const rounds = new TaskRounds(database, tasks);
    await rounds.#insert(tasks, '0 0 1 1 *');
    await rounds.#untilScheduled();
    return rounds;
  }

  /** Makes all tasks due in one minute, and returns the runs a second until the last one has ended. */
  async measure(): Promise<number> {
    const platform = this.#database.asPlatform();
    await platform.query('DELETE FROM scheduled_task_runs');
    const { at, cron } = dueMinute(this.#tasks.length);
    await platform.query(
      `UPDATE scheduled_tasks
          SET schedule = $cron, set_at = date_trunc('milliseconds', now()), scheduled = false
        WHERE id = ANY ($ids)`,
      { cron, ids: this.#tasks.map(({ id }) => id) },
    );
    await this.#untilScheduled();
    if (Date.now() > at)
      throw new Error('The schedules took longer than expected: use fewer tasks');
    const deadline = Date.now() + roundTimeoutMs(this.#tasks.length);
    for (;;) {
      const [ended] = await platform.query<{ count: number; last: Date | null; failed: number }>(
        `SELECT count(*)::integer AS count, max(finished_at) AS last,
                (count(*) FILTER (WHERE status <> 'succeeded'))::integer AS failed
           FROM scheduled_task_runs WHERE finished_at IS NOT NULL`,
      );
      if (ended && ended.failed > 0) throw new Error(`${ended.failed} runs did not succeed`);
      if (ended?.last && ended.count === this.#tasks.length) {
        return this.#tasks.length / ((ended.last.getTime() - at) / 1_000);
      }
      if (Date.now() > deadline) {
        throw new Error(`Only ${ended?.count} of ${this.#tasks.length} runs ended in time`);
      }
      await delay(POLL_MS);
    }
  }

  /** Adds tasks that are not due for long, and returns the seconds until the worker has made their schedules. */
  async addIdle(count: number): Promise<number> {
    const [owner] = this.#tasks;
    if (!owner) throw new TypeError('there is no agent');
    const from = performance.now();
    for (let added = 0; added < count; added += CHUNK) {
      const length = Math.min(CHUNK, count - added);
      const tasks = Array.from({ length }, () => ({ ...owner, id: randomUUID() }));
      await this.#insert(tasks, '7d');
    }
    await this.#untilScheduled();
    return (performance.now() - from) / 1_000;
  }

  async #untilScheduled(): Promise<void> {
    const sql = 'SELECT count(*)::integer AS count FROM scheduled_tasks WHERE scheduled = false';
    const deadline = Date.now() + SCHEDULED_TIMEOUT_MS;
    for (;;) {
      const [open] = await this.#database.asPlatform().query<{ count: number }>(sql);
      if (open?.count === 0) return;
      if (Date.now() > deadline) throw new Error(`${open?.count} tasks have no schedule in time`);
      await delay(POLL_MS);
    }
  }

  async #insert(tasks: readonly TaskOfAgent[], schedule: string): Promise<void> {
    await this.#database.asPlatform().query(
      `INSERT INTO scheduled_tasks (id, user_id, agent_id, name, message, schedule, timezone, enabled,
                                    set_at, created_at, updated_at)
       SELECT id, user_id, agent_id, 'a task', 'Is the shop open?', $schedule, 'UTC', true,
              date_trunc('milliseconds', now()), now(), now()
         FROM unnest($ids::text[], $users::text[], $agents::text[]) AS t (id, user_id, agent_id)`,
      {
        schedule,
        ids: tasks.map(({ id }) => id),
        users: tasks.map(({ userId }) => userId),
        agents: tasks.map(({ agentId }) => agentId),
      },
    );
  }
}
