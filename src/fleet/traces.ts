import type { Page } from '../agents/agents/agents.js';
import { NotFoundError } from '../lib/errors.js';
import type { TenantDatabase } from '../platform/database/database.js';
import { TRACE_KINDS, TRACE_SOURCES, type TraceKind, type TraceStatus } from './trace-sources.js';

/** A piece of work that a workflow runs, under the id of its row. */
export interface Trace {
  readonly id: string;
  readonly kind: TraceKind;
  readonly name: string;
  readonly agentId: string | null;
  readonly status: TraceStatus;
  readonly startedAt: Date;
  readonly finishedAt: Date | null;
  readonly error: string | null;
  /** The run of the workflow; null if the row does not name it. */
  readonly runId: string | null;
}

/** A part of a trace: an activity, a timer or a child workflow. */
export interface Span {
  readonly id: string;
  /** The child workflow that the part belongs to; null for the trace's own workflow. */
  readonly parentId: string | null;
  readonly name: string;
  readonly startedAt: Date;
  readonly finishedAt: Date | null;
  readonly status: TraceStatus;
  readonly attempts: number;
  readonly error: string | null;
}

/** The workflow of a trace. */
export interface TraceRun {
  readonly workflowId: string;
  /** Null as long as no run is known. */
  readonly runId: string | null;
  /** Address of the run in the Temporal UI, if available. */
  readonly url: string | null;
}

export interface TraceHistory {
  /** In the order of their beginnings. */
  readonly spans: readonly Span[];
  /** False if the history of a finished trace is no longer stored. */
  readonly retained: boolean;
  /** True if later spans are missing because the history is too long. */
  readonly truncated: boolean;
  readonly run: TraceRun;
}

/** The histories of the workflows of traces. */
export interface TraceHistories {
  /** @throws UnavailableError when the histories cannot be reached. */
  read(trace: Trace): Promise<TraceHistory>;
}

/** Times in microseconds, the precision of a page position. */
const POSITION = `to_char("startedAt" AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`;

function selectSql(kind: TraceKind, where: string): string {
  const { agentId, error, finishedAt = 't.finished_at', name } = TRACE_SOURCES[kind];
  const { runId = 'NULL', startedAt, status, table } = TRACE_SOURCES[kind];
  return `SELECT '${kind}' AS kind, t.id, ${name} AS name, ${agentId} AS "agentId", ${status} AS status,
                 t.${startedAt} AS "startedAt", ${finishedAt} AS "finishedAt", ${error} AS error,
                 ${runId} AS "runId"
            FROM ${table} t WHERE ${where}`;
}

/** Lists a user's traces, newest first, after a previous page's `next`. */
export async function listTraces(
  tenant: TenantDatabase,
  userId: string,
  {
    after,
    limit,
  }: { readonly limit: number; readonly after?: readonly [string, string] | undefined },
): Promise<Page<Trace>> {
  const newest = TRACE_KINDS.map((kind) => {
    const { startedAt } = TRACE_SOURCES[kind];
    const before =
      after === undefined ? '' : ` AND (t.${startedAt}, t.id) < ($at::timestamptz, $id)`;
    return `(${selectSql(kind, `t.user_id = $userId${before}`)} ORDER BY t.${startedAt} DESC, t.id DESC LIMIT $most)`;
  });
  const rows = await tenant.query<Trace & { position: string }>(
    `SELECT *, ${POSITION} AS position FROM (${newest.join(' UNION ALL ')}) newest
      ORDER BY "startedAt" DESC, id DESC LIMIT $most`,
    // One row more than requested shows whether a next page exists.
    { userId, ...(after && { at: after[0], id: after[1] }), most: limit + 1 },
  );
  const items = rows.slice(0, limit);
  const last = rows.length > limit ? items.at(-1) : undefined;
  return { items, next: last && [last.position, last.id] };
}

/** Returns a trace. @throws NotFoundError also for another tenant's */
export async function getTrace(tenant: TenantDatabase, id: string): Promise<Trace> {
  const [trace] = await tenant.query<Trace>(
    TRACE_KINDS.map((kind) => selectSql(kind, 't.id = $id')).join(' UNION ALL '),
    { id },
  );
  if (!trace) throw new NotFoundError('Trace not found');
  return trace;
}
