import {
  ApplicationFailure,
  CancellationScope,
  isCancellation,
  log,
  setHandler,
  workflowInfo,
} from '@temporalio/workflow';
import type { AgentRef } from '../src/types/agent-ref.js';
import {
  OPERATIONS,
  REQUESTED_KINDS,
  admit,
  operationRules,
  type OperationKind,
  type RequestedKind,
} from '../src/types/operation-kinds.js';
import type { WatchdogState, WatchdogTransition } from '../src/types/watchdog.js';
import { failureReason } from './failure-reason.js';
import { isMemoryMissing } from './memory-missing.js';
import { OPERATION_STEPS } from './operation-steps.js';
import { showPhase } from './phase.js';
import { proxyRecords } from './records.js';
import { isUnharmed } from './replace-container.js';
import {
  OPERATION_CONFLICT,
  OPERATION_UNDER_WAY,
  openOperations,
  operationUpdate,
  provisionRequested,
  type OperationAdmitted,
  type OperationRequest,
  type SuperviseAgentInput,
} from './supervise-agent-messages.js';
import type { Watchdog } from './watchdog.js';

interface Operation {
  readonly id: string;
  readonly kind: OperationKind;
  /** Cancelled when a deletion takes over. */
  readonly scope: CancellationScope;
}

/** How an operation ended. */
interface Outcome {
  readonly status: 'succeeded' | 'failed' | 'cancelled';
  readonly error: string | null;
  /** It failed, and the agent is as it was before. */
  readonly unharmed?: boolean;
  readonly memoryIsMissing?: boolean;
}

/** An operation that was carried out, whose end is to be put down. */
interface Carried {
  readonly operation: Operation;
  /** How the agent was when it began. */
  readonly before: WatchdogState;
  readonly outcome: Outcome;
}

/** How often the end of an operation is put down until recovery is left to tell of it. */
const MAX_ENDINGS = 5;

/** What is known of an agent beside what its watchdog knows. */
type AgentState = Pick<SuperviseAgentInput, 'desired' | 'provisioned'>;

/** The operations on one agent: lets them in, and runs one at a time while the watchdog pauses. */
export class Operations {
  #state: AgentState;
  #agentIsGone = false;
  #current: Operation | undefined;
  #ending: Carried | undefined;
  /** How often that was tried. */
  #endings = 0;
  /** At most three: what was asked for, the provisioning, and the deletion that takes over. */
  readonly #pending: Operation[] = [];

  readonly #agent: AgentRef;
  readonly #watchdog: Watchdog;
  readonly #record = proxyRecords();

  constructor(agent: AgentRef, watchdog: Watchdog, { desired, provisioned }: AgentState) {
    this.#agent = agent;
    this.#watchdog = watchdog;
    this.#state = { desired, provisioned };
    // Before the others: what came together with it is judged by it.
    setHandler(provisionRequested, ({ operationId }) => this.#queue('provision', operationId));
    for (const kind of REQUESTED_KINDS) this.#handle(kind);
    setHandler(openOperations, () =>
      [this.#ending?.operation, this.#current, ...this.#pending].flatMap(
        (operation) => operation?.id ?? [],
      ),
    );
  }

  /** Goes on from what the database knows. */
  takeUp({ desired, provisioned }: AgentState): void {
    this.#state = { desired, provisioned };
  }

  /** For the next run. */
  get state(): AgentState {
    return this.#state;
  }

  /** Whether the agent is no more. */
  get agentIsGone(): boolean {
    return this.#agentIsGone;
  }

  get isWaiting(): boolean {
    return this.#pending.length > 0 || this.#ending !== undefined;
  }

  #handle(kind: RequestedKind): void {
    const definition = operationUpdate(kind);
    setHandler<OperationAdmitted, [OperationRequest], typeof definition>(
      definition,
      ({ operationId }) => this.#accept(kind, operationId),
      { description: OPERATIONS[kind].summary, validator: () => this.#refuse(kind) },
    );
  }

  #refuse(kind: RequestedKind): void {
    const busyWith = this.#pending.at(-1) ?? this.#current;
    if (!busyWith) return;
    switch (admit(kind, busyWith.kind)) {
      case 'run':
      case 'preempt':
        return;
      case 'join':
        throw ApplicationFailure.nonRetryable(
          `It is under way: ${kind}`,
          OPERATION_UNDER_WAY,
          busyWith.id,
        );
      case 'conflict':
        throw ApplicationFailure.nonRetryable(
          `Another operation is running: ${busyWith.kind}`,
          OPERATION_CONFLICT,
        );
    }
  }

  /** Answers at once: how it goes stands in the `operations` table. */
  #accept(kind: RequestedKind, operationId: string): OperationAdmitted {
    // Only what preempts gets here while something runs.
    for (const preempted of [this.#current, ...this.#pending]) preempted?.scope.cancel();
    this.#queue(kind, operationId);
    return { operationId };
  }

  /** Lets an operation follow what is under way; one that is known already is not another one. */
  #queue(kind: OperationKind, id: string): void {
    if ([this.#current, ...this.#pending].some((known) => known?.id === id)) return;
    const operation = { id, kind, scope: new CancellationScope() };
    this.#pending.push(operation);
    const mayBeWithdrawn = operationRules(kind).refused === 'withdrawn';
    if (mayBeWithdrawn && this.#watchdog.isBringingUp) void this.#interruptOnceBegun(operation);
    else this.#watchdog.interrupt();
  }

  /**
   * What brings the agent up is not given up for a request that was withdrawn meanwhile: it would begin
   * anew, and the agent be down for longer.
   */
  async #interruptOnceBegun(operation: Operation): Promise<void> {
    const { id, kind } = operation;
    const { runId } = workflowInfo();
    let isWithdrawn = false;
    try {
      const answer = await this.#record.beginOperation(this.#agent, { id, kind, runId });
      isWithdrawn = answer === 'withdrawn';
    } catch (error) {
      // Whoever runs it next meets the same, and answers for it.
      log.warn('an operation cannot be begun yet', { kind, reason: failureReason(error) });
    }
    const place = this.#pending.indexOf(operation);
    if (place < 0) return;
    if (isWithdrawn) this.#pending.splice(place, 1);
    else this.#watchdog.interrupt();
  }

  /**
   * Runs what waits longest to its end. One that has been withdrawn meanwhile changes nothing. What was
   * carried out, and could not be put down as ended, comes first.
   */
  async runNext(): Promise<void> {
    const operation = this.#ending ? undefined : this.#pending.shift();
    if (operation) await this.#run(operation);
    if (this.#ending) await this.#end(this.#ending);
  }

  async #run(operation: Operation): Promise<void> {
    this.#current = operation;
    try {
      const before = this.#watchdog.memory.state;
      if (operation.scope.consideredCancelled || (await this.#begins(operation))) {
        const outcome = await this.#carryOut(operation, before);
        // From here on the next operation is let in; it begins when this one is put down as ended.
        this.#ending = { operation, before, outcome };
        this.#endings = 0;
      }
    } finally {
      // However it ended: what is not under way must not keep others out.
      this.#current = undefined;
    }
  }

  /** Begins the operation; one that can be neither begun nor refused waits on. */
  async #begins(operation: Operation): Promise<boolean> {
    try {
      return await this.#begin(operation);
    } catch (error) {
      this.#pending.unshift(operation);
      throw error;
    }
  }

  /** Puts the operation down as begun. Only then does it change anything here. */
  async #begin({ id, kind }: Operation): Promise<boolean> {
    const asked = operationRules(kind).desired ?? this.#state.desired;
    const desired = asked === 'running' ? 'running' : 'stopped';
    const transition = this.#beginning(kind, desired);
    const { runId } = workflowInfo();
    const answer = await this.#record.beginOperation(this.#agent, { id, kind, runId, transition });
    if (answer !== 'begun') {
      this.#agentIsGone = answer === 'gone';
      return false;
    }
    // Also when it then fails: what is left of an agent that was to be removed does not start again.
    this.#state = { ...this.#state, desired };
    this.#watchdog.pause(transition);
    return true;
  }

  async #carryOut({ id, kind, scope }: Operation, before: WatchdogState): Promise<Outcome> {
    if (scope.consideredCancelled) return { status: 'cancelled', error: null };
    showPhase(OPERATIONS[kind].phase, this.#state.desired, null);
    const scene = {
      agent: this.#agent,
      operationId: id,
      before,
      watchdog: this.#watchdog,
      ...this.#state,
    };
    try {
      await scope.run(() => OPERATION_STEPS[kind](scene));
      return { status: 'succeeded', error: null };
    } catch (failure) {
      const reason = failureReason(failure);
      // What fails while it is being cancelled would not have been let finish either.
      const status = isCancellation(failure) || scope.consideredCancelled ? 'cancelled' : 'failed';
      log.warn('operation did not succeed', { kind, status, reason });
      const error = status === 'failed' ? reason : null;
      return {
        status,
        error,
        ...(isUnharmed(failure) && { unharmed: true }),
        ...(isMemoryMissing(failure) && { memoryIsMissing: true }),
      };
    }
  }

  /** Where something newer is known of the agent, it is tried again from what that is. */
  async #end({ operation: { id, kind }, before, outcome }: Carried): Promise<void> {
    const { desired } = operationRules(kind);
    const { status, error } = outcome;
    if (status === 'succeeded') {
      this.#agentIsGone = desired === 'deleted';
      if (desired === 'running') this.#state = { ...this.#state, provisioned: true };
      // That the container ended is what was asked for.
      if (desired === 'stopped') this.#watchdog.dismissWakeups();
    }
    const transition = this.#endOf(kind, before, outcome);
    const isUp = status === 'succeeded' && this.#state.desired === 'running';
    this.#watchdog.resume(isUp ? 'healthy' : undefined, transition);
    showPhase(transition?.memory.state ?? this.#settledPhase(status), this.#state.desired, error);
    this.#endings += 1;
    const isLast = this.#endings === MAX_ENDINGS;
    try {
      // Also when the supervisor itself was cancelled: nobody else tells how the operation ended.
      await CancellationScope.nonCancellable(() =>
        this.#record.finishOperation(this.#agent, { id, kind, ...outcome, transition }),
      );
    } catch (error) {
      if (isLast) this.#ending = undefined;
      throw error;
    }
    this.#ending = undefined;
  }

  /** What an operation changes for the watchdog when it begins. */
  #beginning(kind: OperationKind, desired: AgentState['desired']): WatchdogTransition | undefined {
    const { watchdog: effect, desired: asked } = operationRules(kind);
    if (!effect || desired === 'stopped') return undefined;
    const state = this.#state.provisioned ? effect.begins : 'starting';
    // Who asks for an agent that runs takes it into their own hands: its crashes are forgotten.
    const cleared = asked === 'running' ? { crashes: [], repairAttempts: 0 } : undefined;
    return this.#watchdog.transitionTo(state, 'operation', null, cleared);
  }

  /** What the end of an operation changes for the watchdog. */
  #endOf(
    kind: OperationKind,
    before: WatchdogState,
    { status, error, unharmed, memoryIsMissing }: Outcome,
  ): WatchdogTransition | undefined {
    if (this.#agentIsGone || status === 'cancelled') return undefined;
    const { watchdog: effect, whileDown } = operationRules(kind);
    const isUp = this.#state.desired === 'running' && this.#state.provisioned;
    if (status === 'succeeded') {
      if (effect && isUp) return this.#watchdog.transitionTo('running', effect.succeeds, null);
      if (whileDown === 'noted') return undefined;
      return this.#watchdog.transitionTo('stopped', 'operation', null);
    }
    if (!effect) return undefined;
    if (unharmed) return this.#watchdog.transitionTo(before, 'operation', error);
    if (memoryIsMissing) {
      const left = this.#state.desired === 'running' ? 'crash_loop' : 'stopped';
      return this.#watchdog.transitionTo(left, 'memory_missing', error);
    }
    const { state, cause } = effect.fails;
    const isDown = state === 'starting' && !isUp;
    return this.#watchdog.transitionTo(isDown ? 'stopped' : state, cause, error);
  }

  #settledPhase(status: Outcome['status']): string {
    if (this.#agentIsGone) return 'deleted';
    return status === 'succeeded' ? this.#state.desired : 'error';
  }
}
