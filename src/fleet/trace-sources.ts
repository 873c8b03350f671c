/** The kinds of traces, each of which is a row that a workflow carries out. */
export const TRACE_KINDS = ['operation', 'task', 'swarm', 'video', 'email'] as const;

export type TraceKind = (typeof TRACE_KINDS)[number];

export const TRACE_STATUSES = ['running', 'succeeded', 'failed', 'cancelled'] as const;

export type TraceStatus = (typeof TRACE_STATUSES)[number];

/** The SQL of a kind's rows, which have the alias `t`. */
interface TraceSource {
  readonly table: string;
  /** Time of the request; an index of the table has the user, this column and the id. */
  readonly startedAt: string;
  /** Expressions over a row. */
  readonly name: string;
  readonly agentId: string;
  /** One of `TRACE_STATUSES`. */
  readonly status: string;
  readonly error: string;
  /** `t.finished_at` if left out. */
  readonly finishedAt?: string;
  /** The run of the workflow, if the row names it. */
  readonly runId?: string;
}

export const TRACE_SOURCES: Readonly<Record<TraceKind, TraceSource>> = {
  operation: {
    table: 'operations',
    startedAt: 'requested_at',
    name: 't.kind',
    agentId: 't.agent_id',
    status: `CASE t.status WHEN 'requested' THEN 'running' ELSE t.status END`,
    error: 't.error',
    runId: 't.run_id',
  },
  task: {
    table: 'scheduled_task_runs',
    startedAt: 'started_at',
    name: '(SELECT name FROM scheduled_tasks WHERE id = t.task_id)',
    agentId: 't.agent_id',
    status: `CASE t.status WHEN 'skipped' THEN 'cancelled' ELSE t.status END`,
    error: 't.error',
  },
  swarm: {
    table: 'swarms',
    startedAt: 'created_at',
    name: 't.name',
    agentId: 't.coordinator_id',
    status: `CASE t.status WHEN 'pending' THEN 'running' WHEN 'completed' THEN 'succeeded' ELSE t.status END`,
    error: 't.error',
  },
  video: {
    table: 'videos',
    startedAt: 'created_at',
    finishedAt: 't.completed_at',
    name: 'left(t.prompt, 100)',
    agentId: 't.agent_id',
    status: `CASE WHEN t.status = 'completed' THEN 'succeeded'
                  WHEN t.status IN ('failed', 'cancelled') THEN t.status ELSE 'running' END`,
    error: 't.error',
  },
  email: {
    table: 'agent_emails',
    startedAt: 'received_at',
    finishedAt: 't.settled_at',
    name: 't.sender',
    agentId: 't.agent_id',
    status: `CASE WHEN t.status = 'answered' THEN 'succeeded' WHEN t.status = 'failed' THEN 'failed'
                  WHEN t.status IN ('refused', 'skipped') THEN 'cancelled' ELSE 'running' END`,
    error: 't.reason',
  },
};
