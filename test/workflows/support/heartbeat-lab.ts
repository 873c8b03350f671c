import { randomUUID } from 'node:crypto';
import { ApplicationFailure } from '@temporalio/common';
import type { TestWorkflowEnvironment } from '@temporalio/testing';
import { Worker, type WorkflowBundleWithSourceMap } from '@temporalio/worker';
import type {
  HeartbeatActivities,
  HeartbeatRecordActivities,
} from '../../../activities/heartbeats.js';
import type { AgentRef } from '../../../src/types/agent-ref.js';
import { sendHeartbeatsId, heartbeatsTaskQueue } from '../../../workflows/ids.js';
import type { HeartbeatCount, sendHeartbeats } from '../../../workflows/send-heartbeats.js';
import { IN_THIS_THREAD } from './in-this-thread.js';

/** The only host with a worker. */
export const HOST = 'lab';

/** A separate queue from that of a `WorkflowLab` on the same server. */
const TASK_QUEUE = 'heartbeat-lab';

const USER = 'user';

/** The agents of one user, without hosts and a database, with workers that send them heartbeats. */
export class HeartbeatLab {
  /** Ids of the agents that were called, in order. */
  readonly asked: string[] = [];
  /** The highest number of concurrent calls. */
  mostAtOnce = 0;
  wanted = true;
  agents: readonly AgentRef[] = [];
  pageSize = 50;
  /** Ids of agents that fail. */
  readonly failing = new Set<string>();
  #inFlight = 0;
  #workers: Worker[] = [];
  #running: Promise<unknown> = Promise.resolve();

  readonly #environment: TestWorkflowEnvironment;

  private constructor(environment: TestWorkflowEnvironment) {
    this.#environment = environment;
  }

  static async open(
    environment: TestWorkflowEnvironment,
    workflowBundle: WorkflowBundleWithSourceMap,
  ): Promise<HeartbeatLab> {
    const lab = new HeartbeatLab(environment);
    const { nativeConnection: connection, namespace = 'default' } = environment;
    const records: HeartbeatRecordActivities = {
      beginHeartbeat: () => Promise.resolve(lab.wanted),
      runningAgents: (_user, after) => Promise.resolve(lab.#page(after)),
    };
    const heartbeats: HeartbeatActivities = { sendHeartbeat: (agent) => lab.#ask(agent) };
    lab.#workers = await Promise.all([
      Worker.create({
        connection,
        namespace,
        taskQueue: TASK_QUEUE,
        workflowBundle,
        ...IN_THIS_THREAD,
        activities: records,
        maxCachedWorkflows: 0,
      }),
      Worker.create({
        connection,
        namespace,
        taskQueue: heartbeatsTaskQueue(HOST),
        activities: heartbeats,
      }),
    ]);
    lab.#running = Promise.all(lab.#workers.map((worker) => worker.run()));
    lab.#running.catch(() => undefined); // thrown where it is awaited
    return lab;
  }

  /** Creates agents of the user on a host. */
  newAgents(count: number, host = HOST): AgentRef[] {
    return Array.from({ length: count }, (_, number) => ({
      agentId: `${host}-${String(number).padStart(4, '0')}`,
      userId: USER,
      host,
    }));
  }

  /** Sends one heartbeat and returns the id that identifies its runs. */
  async send(workflowId = `${sendHeartbeatsId(USER)}-${randomUUID()}`): Promise<{
    readonly count: HeartbeatCount;
    readonly workflowId: string;
    readonly firstRunId: string;
  }> {
    const handle = await this.#environment.client.workflow.start<typeof sendHeartbeats>(
      'sendHeartbeats',
      {
        workflowId,
        taskQueue: TASK_QUEUE,
        args: [{ userId: USER, setAt: '2026-01-01T00:00:00.000Z' }],
      },
    );
    const count = await handle.result();
    return { count, workflowId, firstRunId: handle.firstExecutionRunId };
  }

  async close(): Promise<void> {
    for (const worker of this.#workers) if (worker.getState() === 'RUNNING') worker.shutdown();
    await this.#running;
  }

  #page(after: string) {
    const agents = this.agents.filter(({ agentId }) => agentId > after).slice(0, this.pageSize);
    const next = agents.length === this.pageSize ? agents.at(-1)?.agentId : undefined;
    return { agents, next };
  }

  async #ask({ agentId }: AgentRef): Promise<'answered'> {
    this.asked.push(agentId);
    this.mostAtOnce = Math.max(this.mostAtOnce, ++this.#inFlight);
    // Releases concurrent calls.
    await new Promise((resolve) => setTimeout(resolve, 20));
    this.#inFlight--;
    if (this.failing.has(agentId)) throw ApplicationFailure.retryable('It does not answer');
    return 'answered';
  }
}
