import { randomUUID } from 'node:crypto';
import {
  WorkflowNotFoundError,
  type WorkflowHandle,
  type WorkflowHandleWithFirstExecutionRunId,
  type WorkflowStartOptions,
} from '@temporalio/client';
import type { PayloadCodec } from '@temporalio/common';
import proto from '@temporalio/proto';
import { TestWorkflowEnvironment } from '@temporalio/testing';
import {
  DefaultLogger,
  Runtime,
  Worker,
  type WorkflowBundleWithSourceMap,
} from '@temporalio/worker';
import { findTemporalTestServer } from '../../../dev/temporal/temporal-binary.js';
import { poll } from '../../../dev/poll.js';
import { readSettings } from '../../../dev/settings.js';
import type { RecordActivities } from '../../../activities/records.js';
import type { ReleaseRecordActivities } from '../../../activities/releases.js';
import type { AgentRef } from '../../../src/types/agent-ref.js';
import type { RequestedKind } from '../../../src/types/operation-kinds.js';
import type { WatchdogMemory } from '../../../src/types/watchdog.js';
import {
  PLATFORM_TASK_QUEUE,
  containersTaskQueue,
  provisionAgentId,
  startsTaskQueue,
  superviseAgentId,
} from '../../../workflows/ids.js';
import type { provisionAgent } from '../../../workflows/provision-agent.js';
import { AGENT_ID, AGENT_OWNER, AGENT_PHASE } from '../../../workflows/search-attributes.js';
import type { superviseAgent } from '../../../workflows/supervise-agent.js';
import * as supervision from '../../../workflows/supervise-agent-messages.js';
import type * as retries from '../../../workflows/retries.js';
import * as shortRetries from './short-retries.js';
import { replayAll, type Run } from './replay-all.js';
import { Supervisors, operationUnderWay } from '../../../temporal/supervisors.js';
import { workflowBundle } from './workflow-bundle.js';
import { FakeAgent, SETTINGS, fakeActivities } from './fake-agent.js';
import { IN_THIS_THREAD } from './in-this-thread.js';
import { HANGS_MS } from '../../support/until.js';

const HOST = 'lab';

let installed: Runtime | undefined;

export { SETTINGS };

/** The watchdog's memory of an agent without incidents. */
export const RUNNING: WatchdogMemory = {
  version: 1,
  state: 'running',
  since: 0,
  crashes: [],
  repairAttempts: 0,
  lastRepair: null,
};

interface LabOptions {
  /** True for a bundle whose activities time out within a second instead of minutes. */
  readonly shortTimeouts?: boolean;
  /**
   * True for workers that cache no workflow, so that another worker can resume at once: this server waits
   * for an ended worker's cached workflows.
   */
  readonly resumable?: boolean;
  /** A codec for the payloads between workflows and activities. */
  readonly codec?: PayloadCodec;
  /** Record activities in place of the fakes. */
  readonly records?: RecordActivities & ReleaseRecordActivities;
  /** `false` if the test starts the first workers itself. */
  readonly workers?: false;
  /**
   * The server; a time-skipping server by default. The time-skipping server rejects a workflow task that
   * cancels an activity which has just ended, and the workflow then hangs.
   */
  readonly environment?: () => Promise<TestWorkflowEnvironment>;
}

// A retry policy without a stand-in would be undefined in a workflow.
shortRetries satisfies Record<keyof typeof retries, object>;

/** Bundles the current workflow sources. */
export function bundleWorkflows({
  shortTimeouts = false,
}: LabOptions = {}): Promise<WorkflowBundleWithSourceMap> {
  const short = { 'workflows/retries.ts': 'test/workflows/support/short-retries.ts' };
  return workflowBundle(shortTimeouts ? short : {});
}

/** Initial state of a supervisor. */
type Beginning = Partial<supervision.SuperviseAgentInput> & {
  /** The operation that provisions the agent, sent together with the start. */
  readonly provision?: string;
};

/** Temporal with workers that run the product's workflows on fake agents. */
export class WorkflowLab {
  readonly #agents = new Map<string, FakeAgent>();
  #workers: Worker[] = [];
  #running: Promise<unknown> = Promise.resolve();
  readonly #supervised: Supervised[] = [];
  /** All workflows started by this lab. */
  readonly #started: Run[] = [];
  /** Watchdog settings for all agents. */
  settings = SETTINGS;

  readonly #bundle: WorkflowBundleWithSourceMap;
  readonly #options: LabOptions;

  private constructor(
    readonly environment: TestWorkflowEnvironment,
    bundle: WorkflowBundleWithSourceMap,
    options: LabOptions,
  ) {
    this.#bundle = bundle;
    this.#options = options;
  }

  static async open(options: LabOptions = {}): Promise<WorkflowLab> {
    installed ??= Runtime.install({
      logger: new DefaultLogger('ERROR', () => undefined), // the tests expect failures
      telemetryOptions: { logging: { filter: 'OFF', forward: {} } },
    });
    const bundle = await bundleWorkflows(options);
    const environment = await (options.environment ?? timeSkipping)();
    const lab = new WorkflowLab(environment, bundle, options);
    if (options.workers !== false) await lab.startWorkers();
    return lab;
  }

  agent(agentId: string = randomUUID()): FakeAgent {
    const agent = new FakeAgent({ agentId, userId: 'user', host: HOST });
    this.#agents.set(agentId, agent);
    return agent;
  }

  async provision(
    agent: FakeAgent,
  ): Promise<WorkflowHandleWithFirstExecutionRunId<typeof provisionAgent>> {
    const workflowId = provisionAgentId(agent.ref.agentId);
    const { workflow } = this.environment.client;
    const handle = await workflow.start<typeof provisionAgent>('provisionAgent', {
      workflowId,
      taskQueue: PLATFORM_TASK_QUEUE,
      args: [{ ...agent.ref, version: 1 }],
      // A cancellation reaches a local activity with the next heartbeat of its workflow task.
      workflowTaskTimeout: '2 seconds',
    });
    this.#started.push({ workflowId, runId: handle.firstExecutionRunId });
    return handle;
  }

  /** Starts the agent's supervisor; the agent runs by default. */
  async supervise(agent: FakeAgent, { provision, ...input }: Beginning = {}): Promise<Supervised> {
    const { workflow } = this.environment.client;
    const workflowId = superviseAgentId(agent.ref.agentId);
    const { desired: state = 'running' } = input;
    const watchdog = input.provisioned === false ? undefined : { ...RUNNING, state };
    const begins = { desired: 'running', provisioned: true, watchdog, ...input } as const;
    // As an earlier supervisor would have recorded it.
    agent.desired = begins.desired;
    agent.provisioned = begins.provisioned;
    agent.memory ??= begins.watchdog;
    const options: WorkflowStartOptions<typeof superviseAgent> = {
      workflowId,
      taskQueue: PLATFORM_TASK_QUEUE,
      args: [
        {
          ...agent.ref,
          observed: 'healthy',
          ...begins,
        },
      ],
    };
    const begin = async () => {
      if (provision === undefined) {
        return (await workflow.start('superviseAgent', options)).firstExecutionRunId;
      }
      const { name: signal } = supervision.provisionRequested;
      const signalArgs = [{ operationId: provision }];
      const reported = { ...options, signal, signalArgs };
      return (await workflow.signalWithStart('superviseAgent', reported)).signaledRunId;
    };
    const firstRunId = await begin();
    this.#started.push({ workflowId, runId: firstRunId });
    const supervised = new Supervised(workflow.getHandle(workflowId), firstRunId);
    this.#supervised.push(supervised);
    return supervised;
  }

  /** Starts a supervisor for an agent that should already have one; optionally with a late signal. */
  async superviseAgain(agent: FakeAgent, late?: 'dockerReturned'): Promise<Supervised> {
    const { workflow } = this.environment.client;
    const workflowId = superviseAgentId(agent.ref.agentId);
    const options: WorkflowStartOptions<typeof superviseAgent> = {
      workflowId,
      taskQueue: PLATFORM_TASK_QUEUE,
      args: [{ ...agent.ref, desired: 'running', provisioned: true }],
    };
    const signal = { signal: late ?? '', signalArgs: [{ awayFrom: 0 }] };
    const runId = late
      ? (await workflow.signalWithStart('superviseAgent', { ...options, ...signal })).signaledRunId
      : (await workflow.start('superviseAgent', options)).firstExecutionRunId;
    const supervised = new Supervised(workflow.getHandle(workflowId), runId);
    this.#supervised.push(supervised);
    return supervised;
  }

  /** Requests the provisioning of an agent, as the API and its worker do. */
  async provisionAgain({ ref }: FakeAgent, operationId: string): Promise<void> {
    const supervisors = new Supervisors(this.environment.client, undefined);
    const agent = { ...ref, name: 'agent', desired: 'running', provisioned: false } as const;
    await supervisors.provision(agent, operationId);
  }

  /** Ends the supervisors of a test, so that they do not affect the time of the next test. */
  async endSupervisors(): Promise<void> {
    for (const { handle } of this.#supervised.splice(0)) {
      await handle.terminate().catch((error: unknown) => {
        if (!(error instanceof WorkflowNotFoundError)) throw error; // it has already ended
      });
    }
  }

  /** Skips this much workflow time, in almost no real time. */
  async pass(time: string): Promise<void> {
    await this.environment.sleep(time as '2 minutes');
  }

  async startWorkers(): Promise<void> {
    const { containers, records } = fakeActivities(
      (ref) => this.#agentOf(ref),
      () => this.settings,
    );
    const connection = this.environment.nativeConnection;
    const { namespace = 'default' } = this.environment;
    const { codec, resumable } = this.#options;
    const common = {
      connection,
      namespace,
      shutdownGraceTime: '1 second',
      ...(codec && { dataConverter: { payloadCodecs: [codec] } }),
    } as const;
    this.#workers = await Promise.all([
      Worker.create({
        ...common,
        taskQueue: PLATFORM_TASK_QUEUE,
        workflowBundle: this.#bundle,
        activities: this.#options.records ?? records,
        ...IN_THIS_THREAD,
        ...(resumable && { maxCachedWorkflows: 0 }),
      }),
      ...[containersTaskQueue(HOST), startsTaskQueue(HOST)].map((taskQueue) =>
        Worker.create({
          ...common,
          taskQueue,
          activities: containers,
          // Cancellations arrive with heartbeats.
          maxHeartbeatThrottleInterval: '100 milliseconds',
        }),
      ),
    ]);
    this.#running = Promise.all(this.#workers.map((worker) => worker.run()));
    this.#running.catch(() => undefined); // thrown where it is awaited
  }

  async stopWorkers(): Promise<void> {
    for (const worker of this.#workers) if (worker.getState() === 'RUNNING') worker.shutdown();
    await this.#running;
    this.#workers = [];
  }

  /** Ends all workers and replays every history of the test, as after the end of a worker. */
  async close(): Promise<void> {
    try {
      await this.stopWorkers();
      await replayAll(this.environment.client, this.#bundle, this.#started);
    } finally {
      await this.environment.teardown();
    }
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #agentOf({ agentId }: AgentRef): FakeAgent {
    const agent = this.#agents.get(agentId);
    if (!agent) throw new Error(`No test has created agent ${agentId}`);
    return agent;
  }
}

/** A supervisor as tests use it. */
export class Supervised {
  constructor(
    readonly handle: WorkflowHandle<typeof superviseAgent>,
    readonly firstRunId: string,
  ) {}

  /** Requests an operation and returns the id of the operation that runs. */
  async request(kind: RequestedKind, operationId: string, updateId = operationId): Promise<string> {
    try {
      const answer = await this.handle.executeUpdate(supervision.operationUpdate(kind), {
        args: [{ operationId }],
        updateId,
      });
      return answer.operationId;
    } catch (error) {
      const underWay = operationUnderWay(error);
      if (underWay === undefined) throw error;
      return underWay;
    }
  }

  async checkNow(): Promise<void> {
    await this.handle.signal(supervision.checkNow);
  }

  async containerEnded(end: Partial<supervision.ContainerEnd> = {}): Promise<void> {
    await this.handle.signal(supervision.containerEnded, {
      containerId: 'container',
      cause: 'exit',
      exitCode: 1,
      at: 0,
      ...end,
    });
  }

  async dockerReturned(awayFrom = 0): Promise<void> {
    await this.handle.signal(supervision.dockerReturned, { awayFrom });
  }

  async historyLength(): Promise<number> {
    const { historyLength } = await this.handle.describe();
    return historyLength;
  }

  /** Returns the id of the current run, which changes when it continues as new. */
  async runId(): Promise<string> {
    const { runId } = await this.handle.describe();
    return runId;
  }

  /** Waits in real time until the search attribute shows this phase. */
  async inPhase(phase: string): Promise<void> {
    const shown = async () => (await this.handle.describe()).typedSearchAttributes.get(AGENT_PHASE);
    const reached = await poll(async () => (await shown()) === phase || undefined, {
      timeoutMs: HANGS_MS,
      everyMs: 20,
    });
    if (!reached)
      throw new Error(`Phase ${phase} was not reached; the current phase is ${await shown()}`);
  }

  /** Waits until the supervisor ends, skipping the time until then. */
  async ended(): Promise<void> {
    await this.handle.result();
  }
}

export const provisioningOf = (id: string): Beginning => ({ provisioned: false, provision: id });

/** Starts a server that skips idle time. */
export async function timeSkipping(): Promise<TestWorkflowEnvironment> {
  const server = await findTemporalTestServer(readSettings(process.env));
  const environment = await TestWorkflowEnvironment.createTimeSkipping({
    server: { executable: { type: 'existing-path', path: server } },
  });
  // This server cannot list search attributes, which the worker would request first.
  await environment.connection.operatorService.addSearchAttributes({
    namespace: environment.namespace ?? 'default',
    searchAttributes: Object.fromEntries(
      [AGENT_ID, AGENT_OWNER, AGENT_PHASE].map(({ name }) => [
        name,
        proto.temporal.api.enums.v1.IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD,
      ]),
    ),
  });
  return environment;
}
