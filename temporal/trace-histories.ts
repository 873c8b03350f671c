import { isGrpcServiceError, WorkflowNotFoundError, type Client } from '@temporalio/client';
import type { temporal } from '@temporalio/proto';
import type { TraceKind } from '../src/fleet/trace-sources.js';
import type { Span, Trace, TraceHistories, TraceHistory } from '../src/fleet/traces.js';
import { answerEmailId, generateVideoId, runSwarmId, superviseAgentId } from '../workflows/ids.js';
import { spansOf, type HistorySpan, type RunState } from './history-spans.js';
import { spansOfOperation } from './operation-window.js';
import { runUrl } from './run-url.js';
import { temporalCall } from './temporal-call.js';

/** Milliseconds that a request waits for Temporal. */
const CALL_TIMEOUT_MS = 5_000;

/** Maximum number of events that are read for a trace, those of its child workflows included. */
export const MAX_EVENTS = 2_000;

/** Maximum number of levels of child workflows. */
const MAX_LEVELS = 3;

/** gRPC's status code. */
const NOT_FOUND = 5;

/** The workflow of each kind. */
const WORKFLOW_IDS: Readonly<Record<TraceKind, (trace: Trace) => string>> = {
  operation: ({ agentId }) => superviseAgentId(agentId ?? ''),
  task: ({ id }) => id,
  swarm: ({ id }) => runSwarmId(id),
  video: ({ id }) => generateVideoId(id),
  email: ({ id }) => answerEmailId(id),
};

interface Run {
  readonly workflowId: string;
  readonly runId: string;
}

/** Events that may still be read. */
interface Budget {
  left: number;
  isCut: boolean;
}

/** The histories of traces, read from Temporal. */
export class TemporalTraceHistories implements TraceHistories {
  readonly #client: Client;
  readonly #uiUrl: string | undefined;

  constructor(client: Client, uiUrl: string | undefined) {
    this.#client = client;
    this.#uiUrl = uiUrl;
  }

  read(trace: Trace): Promise<TraceHistory> {
    return temporalCall(this.#client, CALL_TIMEOUT_MS, () => this.#read(trace));
  }

  async #read(trace: Trace): Promise<TraceHistory> {
    const workflowId = WORKFLOW_IDS[trace.kind](trace);
    // An operation that has not begun has no part in the history of its supervisor.
    const isUnbegun = trace.kind === 'operation' && trace.runId === null;
    const found = isUnbegun ? undefined : await this.#find(workflowId, trace.runId ?? undefined);
    const budget: Budget = { left: MAX_EVENTS, isCut: false };
    const history = found && (await this.#spans(found, budget));
    if (!found || !history) {
      const run = { workflowId, runId: trace.runId, url: null };
      // The workflow of an unfinished trace may not have started yet.
      const retained = isUnbegun || trace.finishedAt === null;
      return { spans: [], retained, truncated: false, run };
    }
    const own = trace.kind === 'operation' ? spansOfOperation(history, trace) : history;
    const spans = await this.#withChildren(own, null, MAX_LEVELS, budget);
    return {
      spans: spans.toSorted((one, other) => one.startedAt.getTime() - other.startedAt.getTime()),
      retained: true,
      truncated: budget.isCut,
      run: {
        ...{ workflowId, runId: found.runId },
        url: runUrl(this.#uiUrl, this.#client.options.namespace, found) ?? null,
      },
    };
  }

  /** Adds the spans of child workflows, whose ids begin with the id of the child's own span. */
  async #withChildren(
    spans: readonly HistorySpan[],
    parentId: string | null,
    levels: number,
    budget: Budget,
  ): Promise<Span[]> {
    const all: Span[] = [];
    for (const { child, ...span } of spans) {
      const id = parentId === null ? span.id : `${parentId}.${span.id}`;
      all.push({ ...span, id, parentId });
      if (!child) continue;
      if (levels === 0 || budget.left === 0) {
        budget.isCut = true;
        continue;
      }
      const found = await this.#find(child.workflowId, child.runId);
      const inner = found && (await this.#spans(found, budget));
      if (inner) all.push(...(await this.#withChildren(inner, id, levels - 1, budget)));
    }
    return all;
  }

  /** Returns a run with its state; undefined if the run is not stored. */
  async #find(workflowId: string, runId?: string): Promise<(Run & RunState) | undefined> {
    try {
      const handle = this.#client.workflow.getHandle(workflowId, runId);
      const { closeTime, raw, runId: found } = await handle.describe();
      const pending = raw.pendingActivities ?? [];
      return { workflowId, runId: found, closedAt: closeTime ?? null, pending };
    } catch (error) {
      if (error instanceof WorkflowNotFoundError) return undefined;
      throw error;
    }
  }

  /** Returns the spans of a run; undefined if its history is not stored. */
  async #spans(run: Run & RunState, budget: Budget): Promise<HistorySpan[] | undefined> {
    try {
      return spansOf(await this.#events(run, budget), run);
    } catch (error) {
      if (isGrpcServiceError(error) && Number(error.code) === NOT_FOUND) return undefined;
      throw error;
    }
  }

  async #events(
    { runId, workflowId }: Run,
    budget: Budget,
  ): Promise<temporal.api.history.v1.IHistoryEvent[]> {
    const events: temporal.api.history.v1.IHistoryEvent[] = [];
    let nextPageToken: Uint8Array | undefined;
    do {
      const page = await this.#client.workflowService.getWorkflowExecutionHistory({
        namespace: this.#client.options.namespace,
        execution: { workflowId, runId },
        maximumPageSize: budget.left,
        ...(nextPageToken && { nextPageToken }),
      });
      const read = page.history?.events ?? [];
      const taken = read.slice(0, budget.left);
      events.push(...taken);
      budget.left -= taken.length;
      nextPageToken = page.nextPageToken.length > 0 ? page.nextPageToken : undefined;
      if (taken.length < read.length || (budget.left === 0 && nextPageToken)) budget.isCut = true;
    } while (nextPageToken && budget.left > 0);
    return events;
  }
}
