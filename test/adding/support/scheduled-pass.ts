import { randomUUID } from 'node:crypto';
import { Worker } from '@temporalio/worker';
import { createHousekeepingActivities } from '../../../activities/housekeeping.js';
import { putSchedules } from '../../../temporal/schedules.js';
import { PLATFORM_TASK_QUEUE } from '../../../workflows/ids.js';
import { newUser, testDatabase } from '../../support/postgres.js';
import { testTemporal, workflowCode } from '../../support/temporal.js';
import { until } from '../../support/until.js';

/** Runs the scheduled jobs on messages of these ages, in days, and returns the remaining ones. */
export async function messagesLeft(ages: readonly number[]): Promise<readonly string[]> {
  const [database, temporal] = await Promise.all([testDatabase(), testTemporal()]);
  const { db } = database;
  const { client, connection, namespace } = temporal;
  try {
    const userId = await newUser(database);
    const agentId = randomUUID();
    const names = { id: agentId, userId, name: agentId, subdomain: agentId };
    const model = { plan: 'solo', model: 'gpt-4', aiProvider: 'openai' } as const;
    const message = { agentId, userId, conversation: 'main', role: 'user' } as const;
    await db.asUser(userId).transaction(async (all) => {
      await all.Agent.create({ ...names, ...model });
      for (const days of ages) {
        const content = `${days} days old`;
        const createdAt = new Date(Date.now() - days * 24 * 60 * 60_000);
        await all.Message.create({ id: randomUUID(), ...message, content, createdAt });
      }
    });
    await putSchedules(client, 'host');
    const worker = await Worker.create({
      connection,
      namespace,
      ...(await workflowCode()),
      taskQueue: PLATFORM_TASK_QUEUE,
      activities: createHousekeepingActivities(db),
    });
    return await worker.runUntil(() =>
      until(async () => {
        const left = await db
          .asUser(userId)
          .query<{ content: string }>('SELECT content FROM messages ORDER BY created_at');
        return left.length < ages.length && left.map(({ content }) => content);
      }),
    );
  } finally {
    await temporal.close();
    await database.close();
  }
}
