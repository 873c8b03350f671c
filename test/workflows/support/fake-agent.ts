import { Context } from '@temporalio/activity';
import { ApplicationFailure, ApplicationFailureCategory } from '@temporalio/common';
import type { ContainerActivities } from '../../../activities/containers.js';
import type { RecordActivities } from '../../../activities/records.js';
import type { StartActivities } from '../../../activities/starts.js';
import type { ReleaseActivities, ReleaseRecordActivities } from '../../../activities/releases.js';
import type { GuardedWatchdog } from '../../../activities/guarded.js';
import type { AgentRef } from '../../../src/types/agent-ref.js';
import type { PortRange } from '../../../src/agents/agents/agent-subnet.js';
import { operationRules } from '../../../src/types/operation-kinds.js';
import type { OperationEnd } from '../../../src/agents/operations/operation-store.js';
import type { ContainerHealth, Observation } from '../../../src/agents/watchdog/observation.js';
import type {
  DeathCause,
  PastTransition,
  WatchdogMemory,
  WatchdogSettings,
  WatchdogTransition,
} from '../../../src/types/watchdog.js';
import { poll } from '../../../dev/poll.js';
import { HANGS_MS } from '../../support/until.js';

type DockerActivities = ContainerActivities & StartActivities & ReleaseActivities & GuardedWatchdog;

export type ContainerStep = keyof DockerActivities;
export type Step = ContainerStep | keyof (RecordActivities & ReleaseRecordActivities);

/** Behaviour of a step in place of success; it succeeds if it returns. */
export type Misbehaviour = (attempt: number) => Promise<void> | void;

/** Milliseconds between two checks of a healthy agent, as in production. */
export const CHECK_INTERVAL_MS = 120_000;

/** Steps that bring up an agent when everything but its memory may be missing. */
export const BRING_UP: readonly string[] = [
  'reservePort',
  'createNetwork',
  'ensureImage',
  'requireVolume',
  'createContainer',
  'startContainer',
  'awaitReady',
];
/** Steps that are requested together and begin in any order. */
const CONCURRENT = ['ensureImage', 'createVolume', 'requireVolume', 'createNetwork'];

/** The default settings of the contract. */
export const SETTINGS: WatchdogSettings = {
  startupFailureThreshold: 3,
  maxRepairAttempts: 2,
  crashLoopWindowMs: 5 * 60_000,
  crashLoopThreshold: 3,
  degradedCheckIntervalMs: 5_000,
  autoRepair: true,
};

const FIRST_PORT = 40_000;

/**
 * The container and records of one agent, without Docker and a database. It records every step that
 * workflows request and fails as a test specifies.
 */
export class FakeAgent {
  /** Steps in the order they began; `step#2` is the second attempt of a step. */
  readonly steps: string[] = [];
  readonly begun: string[] = [];
  readonly finished: Pick<OperationEnd, 'id' | 'status' | 'error'>[] = [];
  /** Health that the next check returns. */
  health: ContainerHealth = 'healthy';
  /** Milliseconds that the container had run when its start step ended. */
  startTookMs = 0;
  /** True if the container exists and can be started. */
  containerIsThere = true;
  /** True if the volume with the agent's memory exists. */
  memoryIsThere = true;
  /** True if the agent's first memory is a copy of another agent's. */
  isClone = false;
  /** True if the last replacement retained an old memory. */
  keptMemory: boolean | undefined;
  /** True if an update brings an image other than the running one. */
  imageIsNew = true;
  /** Cause of death of a stopped container. */
  death: DeathCause = 'exit';
  /** Docker's absence within which a stopped container ended. */
  away: Observation['away'];
  checks = 0;
  readonly transitions: WatchdogTransition[] = [];
  /** Transitions that the agent's host made by itself, as recorded. */
  readonly past: PastTransition[] = [];
  /** Transitions that checks report until they are recorded in `past`. */
  reportedPast: readonly PastTransition[] = [];
  /** The watchdog's memory as last recorded. */
  memory: WatchdogMemory | undefined;
  /** The agent's desired state in the database. */
  desired: 'running' | 'stopped' = 'running';
  provisioned = true;
  isGone = false;
  /** Results of `beginOperation` by operation; `begun` by default. */
  readonly beginnings = new Map<string, 'withdrawn' | 'gone'>();
  #inFlight = 0;
  /** True if two steps that touch the container ever overlapped. */
  overlapped = false;
  readonly #misbehaviours = new Map<Step, Misbehaviour>();

  constructor(readonly ref: AgentRef) {}

  on(step: Step, misbehaviour: Misbehaviour): this {
    this.#misbehaviours.set(step, misbehaviour);
    return this;
  }

  behave(step: Step): this {
    this.#misbehaviours.delete(step);
    return this;
  }

  /** Steps without retries and records; steps that begin together are sorted by name. */
  get containerSteps(): string[] {
    const steps = this.steps.filter(
      (step) => !/#|^(record|begin|finish|watch|observe|loadSupervisedState)/.test(step),
    );
    for (let from = 0, to = 0; from < steps.length; from = to + 1) {
      for (to = from; CONCURRENT.includes(steps[to] ?? ''); to++);
      steps.splice(from, to - from, ...steps.slice(from, to).sort());
    }
    return steps;
  }

  async reached(step: string, times = 1): Promise<void> {
    const count = () => this.steps.filter((taken) => taken === step).length;
    await this.until(`${step} is reached`, () => count() >= times);
  }

  /** Returns the final status of the operation. */
  async end(id: string): Promise<string | undefined> {
    const found = () => this.finished.find((operation) => operation.id === id);
    await this.until(`${id} is finished`, () => found() !== undefined);
    return found()?.status;
  }

  /** Waits in real time; workflow time stands still unless a test moves it. */
  async until(what: string, holds: () => boolean, timeoutMs = HANGS_MS): Promise<void> {
    const held = await poll(() => Promise.resolve(holds() || undefined), {
      timeoutMs,
      everyMs: 10,
    });
    if (!held)
      throw new Error(
        `Timed out waiting until ${what}; steps: ${this.steps.join(' ')}; states: ${this.states.join(', ')}`,
      );
  }

  async step(step: Step, isContainers = false): Promise<void> {
    const { attempt } = Context.current().info;
    this.steps.push(attempt === 1 ? step : `${step}#${attempt}`);
    const alone = isContainers && !CONCURRENT.includes(step);
    if (alone && this.#inFlight > 0) this.overlapped = true;
    this.#inFlight += isContainers ? 1 : 0;
    try {
      await this.#misbehaviours.get(step)?.(attempt);
    } finally {
      this.#inFlight -= isContainers ? 1 : 0;
    }
  }

  async watch(last: ContainerHealth | null, lastApplied?: string): Promise<Observation> {
    this.checks++;
    const { health } = this;
    if (Context.current().info.attempt === 1) this.steps.push('watchHealth');
    await this.#misbehaviours.get('watchHealth')?.(Context.current().info.attempt);
    if (!this.#isToReport(lastApplied) && (health === last || health === 'starting')) {
      throw ApplicationFailure.create({
        type: 'Unchanged',
        category: ApplicationFailureCategory.BENIGN,
        nextRetryDelay: CHECK_INTERVAL_MS,
      });
    }
    return this.#seen(lastApplied);
  }

  observed(lastApplied?: string): Observation {
    this.checks++;
    return this.#seen(lastApplied);
  }

  #isToReport(lastApplied: string | undefined): boolean {
    return this.reportedPast.length > 0 && this.reportedPast.at(-1)?.id !== lastApplied;
  }

  #seen(lastApplied: string | undefined): Observation {
    const { health } = this;
    return {
      health,
      reason: health === 'healthy' ? null : `It is ${health}`,
      ...(health === 'stopped' && { death: this.death }),
      ...(health === 'stopped' && this.away && { away: this.away }),
      ...(this.#isToReport(lastApplied) && { past: this.reportedPast }),
      observedAt: '2026-01-01T00:00:00.000Z',
    };
  }

  /** The recorded states in order. */
  get states(): string[] {
    return this.transitions.map(({ memory, cause }) => `${memory.state} (${cause})`);
  }

  changed(transition: WatchdogTransition | undefined): void {
    if (!transition) return;
    const known = this.transitions.find(({ id }) => id === transition.id);
    if (known && known.memory.version < transition.memory.version) {
      throw new Error('a transition with this id is already recorded'); // as in the database
    }
    if (known) return;
    this.transitions.push(transition);
    this.memory = transition.memory;
  }

  /** Waits in real time until the watchdog has recorded these states in this order. */
  async went(...states: string[]): Promise<void> {
    const tail = () => this.states.slice(-states.length).join();
    await this.until(`it goes ${states.join(', ')}`, () => tail() === states.join());
  }

  port = 0;

  /** Port ranges that networks on the host occupy. */
  takenPlaces: PortRange[] = [];

  reserve(above: number, taken: readonly PortRange[]): number {
    if (this.port > above) return this.port;
    this.port = Math.max(above + 1, FIRST_PORT);
    for (const { first, last } of taken) {
      if (first <= this.port && this.port <= last) this.port = last + 1;
    }
    return this.port;
  }
}

/** Returns the failure of an activity that needs the missing volume. */
const memoryMissing = () =>
  ApplicationFailure.nonRetryable('its memory is missing', 'MemoryMissingError');

/** Creates the activities for all agents of a test file; each call is routed to its fake. */
export function fakeActivities(
  agentOf: (agent: AgentRef) => FakeAgent,
  settings: () => WatchdogSettings,
): {
  containers: DockerActivities;
  records: RecordActivities & ReleaseRecordActivities;
} {
  const container = (step: ContainerStep) => (agent: AgentRef) => agentOf(agent).step(step, true);
  return {
    containers: {
      ensureImage: container('ensureImage'),
      createNetwork: container('createNetwork'),
      async takenPlaces(agent) {
        await agentOf(agent).step('takenPlaces');
        return agentOf(agent).takenPlaces;
      },
      async createVolume(agent) {
        await agentOf(agent).step('createVolume', true);
        return agentOf(agent).isClone ? 'to-be-copied' : 'there';
      },
      copyMemory: container('copyMemory'),
      async requireVolume(agent) {
        await agentOf(agent).step('requireVolume', true);
        if (!agentOf(agent).memoryIsThere) throw memoryMissing();
      },
      undoVolume: container('undoVolume'),
      createContainer: container('createContainer'),
      async startContainer(agent) {
        await agentOf(agent).step('startContainer', true);
        return agentOf(agent).startTookMs;
      },
      async startExisting(agent) {
        await agentOf(agent).step('startExisting', true);
        if (!agentOf(agent).memoryIsThere) throw memoryMissing();
        return agentOf(agent).containerIsThere;
      },
      awaitReady: container('awaitReady'),
      stopContainer: container('stopContainer'),
      removeContainer: container('removeContainer'),
      removeNetwork: container('removeNetwork'),
      removeVolume: container('removeVolume'),
      watchHealth: (agent, last, { lastApplied: lastApplied }) =>
        agentOf(agent).watch(last, lastApplied),
      async observeAgent(agent, lastApplied) {
        await agentOf(agent).step('observeAgent');
        return agentOf(agent).observed(lastApplied);
      },
      async watchDegraded(agent, last, lastApplied) {
        await agentOf(agent).step('watchDegraded');
        return agentOf(agent).watch(last, lastApplied);
      },
      async findImage(agent) {
        await agentOf(agent).step('findImage');
        return agentOf(agent).imageIsNew;
      },
      retainContainer: container('retainContainer'),
      makeVolume: container('makeVolume'),
      restoreContainer: container('restoreContainer'),
      removeLeftovers: container('removeLeftovers'),
      recordCrash: (agent) => agentOf(agent).step('recordCrash'),
      killGateway: container('killGateway'),
    },
    records: {
      async loadSupervisedState(agent) {
        await agentOf(agent).step('loadSupervisedState');
        const { desired, isGone, memory, provisioned } = agentOf(agent);
        return isGone ? null : { desired, provisioned, watchdog: memory ?? null };
      },
      async reservePort(agent, above, taken = []) {
        await agentOf(agent).step('reservePort');
        return agentOf(agent).reserve(above, taken);
      },
      async releasePort(agent) {
        await agentOf(agent).step('releasePort');
        agentOf(agent).port = 0;
      },
      recordRunning: (agent) => agentOf(agent).step('recordRunning'),
      recordUpdate: (agent) => agentOf(agent).step('recordUpdate'),
      beginRelease: (agent) => agentOf(agent).step('beginRelease'),
      async keepRelease(agent, _operationId, hadMemory) {
        await agentOf(agent).step('keepRelease');
        agentOf(agent).keptMemory = hadMemory;
      },
      rollBackRelease: (agent) => agentOf(agent).step('rollBackRelease'),
      watchdogSettings: () => Promise.resolve(settings()),
      async recordTransition(agent, transition) {
        await agentOf(agent).step('recordTransition');
        agentOf(agent).changed(transition);
      },
      async recordPast(agent, past) {
        await agentOf(agent).step('recordPast');
        agentOf(agent).past.push(...past);
      },
      async recordRepairAttempt(agent, { memory }) {
        await agentOf(agent).step('recordRepairAttempt');
        agentOf(agent).memory = memory;
      },
      async beginOperation(agent, { id, kind, transition }) {
        await agentOf(agent).step('beginOperation');
        const answer = agentOf(agent).beginnings.get(id) ?? 'begun';
        if (answer !== 'begun') return answer;
        agentOf(agent).changed(transition);
        agentOf(agent).begun.push(id);
        const { desired } = operationRules(kind);
        if (desired !== null) agentOf(agent).desired = desired === 'running' ? desired : 'stopped';
        return answer;
      },
      async finishOperation(agent, { id, kind, status, error, transition }) {
        await agentOf(agent).step('finishOperation');
        agentOf(agent).changed(transition);
        agentOf(agent).finished.push({ id, status, error });
        if (status !== 'succeeded') return;
        const { desired } = operationRules(kind);
        if (desired === 'running') agentOf(agent).provisioned = true;
        agentOf(agent).isGone = desired === 'deleted';
      },
    },
  };
}
