import type { TenantDatabase } from '../../platform/database/database.js';
import type { ScheduledTaskRow, ScheduledTaskRunRow } from '../../platform/database/models.js';
import { messageId } from '../chat/turn.js';
import { KEPT_RUNS } from './open-run.js';
import { taskConversation } from './task-ids.js';

/** Characters of an answer that lists of runs show; the conversation has the rest. */
export const SHOWN_ANSWER = 16_000;

export type PastRun = Pick<
  ScheduledTaskRunRow,
  'id' | 'scheduledFor' | 'startedAt' | 'finishedAt' | 'status' | 'error'
> & { readonly answer: string | null };

/** Returns a task's kept runs, newest first, with the answers that its conversation still has. */
export async function listRuns(
  tenant: TenantDatabase,
  { agentId, id: taskId }: Pick<ScheduledTaskRow, 'agentId' | 'id'>,
): Promise<PastRun[]> {
  const runs = await tenant.query<Omit<PastRun, 'answer'>>(
    `SELECT id, scheduled_for AS "scheduledFor", started_at AS "startedAt",
            finished_at AS "finishedAt", status, error
       FROM scheduled_task_runs WHERE task_id = $taskId
      ORDER BY started_at DESC, id DESC LIMIT ${KEPT_RUNS}`,
    { taskId },
  );
  const conversation = taskConversation(taskId);
  const answerOf = (requestId: string) =>
    messageId({ agentId, conversation, message: '', requestId }, 'assistant');
  const answers = await tenant.query<{ id: string; content: string }>(
    `SELECT id, left(content, ${SHOWN_ANSWER}) AS content FROM messages
      WHERE id = ANY ($ids) AND status = 'complete'`,
    { ids: runs.map(({ id }) => answerOf(id)) },
  );
  const contents = new Map(answers.map(({ id, content }) => [id, content]));
  return runs.map((run) => ({ ...run, answer: contents.get(answerOf(run.id)) ?? null }));
}
