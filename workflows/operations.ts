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
  /** Cancelled when a deletion preempts the operation. */
  readonly scope: CancellationScope;
}

interface Outcome {
  readonly status: 'succeeded' | 'failed' | 'cancelled';
  readonly error: string | null;
  /** The operation failed and left the agent as before. */
  readonly unharmed?: boolean;
  readonly memoryIsMissing?: boolean;
}

/** A finished operation whose end is still to be recorded. */
interface CompletedOperation {
  readonly operation: Operation;
  readonly before: WatchdogState;
  readonly outcome: Outcome;
}

/** Maximum number of attempts to record an operation's end before it is left to recovery. */
const MAX_ENDINGS = 5;

/** State of an agent that its watchdog does not store. */
type AgentState = Pick<SuperviseAgentInput, 'desired' | 'provisioned'>;

/** Operations on one agent: admits them, and runs one at a time while the watchdog pauses. */
export class Operations {
  #state: AgentState;
  #agentIsGone = false;
  #current: Operation | undefined;
  #unrecorded: CompletedOperation | undefined;
  #recordAttempts = 0;
  /** At most three: a requested operation, the provisioning, and the deletion that preempts them. */
  readonly #pending: Operation[] = [];

  readonly #agent: AgentRef;
  readonly #watchdog: Watchdog;
  readonly #record = proxyRecords();

  constructor(agent: AgentRef, watchdog: Watchdog, { desired, provisioned }: AgentState) {
    this.#agent = agent;
    this.#watchdog = watchdog;
    this.#state = { desired, provisioned };
    // First, because requests that arrive together with a provisioning are admitted according to it.
    setHandler(provisionRequested, ({ operationId }) => this.#queue('provision', operationId));
    for (const kind of REQUESTED_KINDS) this.#handle(kind);
    setHandler(openOperations, () =>
      [this.#unrecorded?.operation, this.#current, ...this.#pending].flatMap(
        (operation) => operation?.id ?? [],
      ),
    );
  }

  restore({ desired, provisioned }: AgentState): void {
    this.#state = { desired, provisioned };
  }

  get state(): AgentState {
    return this.#state;
  }

  get agentIsGone(): boolean {
    return this.#agentIsGone;
  }

  get isWaiting(): boolean {
    return this.#pending.length > 0 || this.#unrecorded !== undefined;
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

  /** Answers at once; the `operations` table shows the progress. */
  #accept(kind: RequestedKind, operationId: string): OperationAdmitted {
    // While an operation runs, only a preempting one passes the validator.
    for (const preempted of [this.#current, ...this.#pending]) preempted?.scope.cancel();
    this.#queue(kind, operationId);
    return { operationId };
  }

  /** Queues an operation, unless it is queued or running already. */
  #queue(kind: OperationKind, id: string): void {
    if ([this.#current, ...this.#pending].some((known) => known?.id === id)) return;
    const operation = { id, kind, scope: new CancellationScope() };
    this.#pending.push(operation);
    const mayBeWithdrawn = operationRules(kind).onRefusal === 'withdrawn';
    if (mayBeWithdrawn && this.#watchdog.isBringingUp) void this.#interruptOnceBegun(operation);
    else this.#watchdog.interrupt();
  }

  /**
   * Interrupts a start of the agent only once the operation is recorded as begun: a withdrawn request must
   * not restart the start and prolong the downtime.
   */
  async #interruptOnceBegun(operation: Operation): Promise<void> {
    const { id, kind } = operation;
    const { runId } = workflowInfo();
    let isWithdrawn = false;
    try {
      const answer = await this.#record.beginOperation(this.#agent, { id, kind, runId });
      isWithdrawn = answer === 'withdrawn';
    } catch (error) {
      // The run of the operation will get the same error and handle it.
      log.warn('an operation cannot begin yet', { kind, reason: failureReason(error) });
    }
    const place = this.#pending.indexOf(operation);
    if (place < 0) return;
    if (isWithdrawn) this.#pending.splice(place, 1);
    else this.#watchdog.interrupt();
  }

  /**
   * Runs the oldest pending operation to its end; a withdrawn one changes nothing. First records the end of a
   * previous operation if that failed.
   */
  async runNext(): Promise<void> {
    const operation = this.#unrecorded ? undefined : this.#pending.shift();
    if (operation) await this.#run(operation);
    if (this.#unrecorded) await this.#end(this.#unrecorded);
  }

  async #run(operation: Operation): Promise<void> {
    this.#current = operation;
    try {
      const before = this.#watchdog.memory.state;
      if (operation.scope.consideredCancelled || (await this.#begins(operation))) {
        const outcome = await this.#carryOut(operation, before);
        // The next operation is admitted from here on, but starts only when this one's end is recorded.
        this.#unrecorded = { operation, before, outcome };
        this.#recordAttempts = 0;
      }
    } finally {
      // In every case, so that an ended operation does not block others.
      this.#current = undefined;
    }
  }

  /** Begins the operation; if it can be neither begun nor refused, it stays pending. */
  async #begins(operation: Operation): Promise<boolean> {
    try {
      return await this.#begin(operation);
    } catch (error) {
      this.#pending.unshift(operation);
      throw error;
    }
  }

  /** Records the operation as begun, and only then changes state here. */
  async #begin({ id, kind }: Operation): Promise<boolean> {
    const requested = operationRules(kind).desired ?? this.#state.desired;
    const desired = requested === 'running' ? 'running' : 'stopped';
    const transition = this.#beginning(kind, desired);
    const { runId } = workflowInfo();
    const answer = await this.#record.beginOperation(this.#agent, { id, kind, runId, transition });
    if (answer !== 'begun') {
      this.#agentIsGone = answer === 'gone';
      return false;
    }
    // Kept even if the operation fails: a partly removed agent must not start again.
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
      // A failure during cancellation counts as cancelled, since the step would not have finished.
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

  /** Records the end; if the database has newer state of the agent, reloads it and retries. */
  async #end({ operation: { id, kind }, before, outcome }: CompletedOperation): Promise<void> {
    const { desired } = operationRules(kind);
    const { status, error } = outcome;
    if (status === 'succeeded') {
      this.#agentIsGone = desired === 'deleted';
      if (desired === 'running') this.#state = { ...this.#state, provisioned: true };
      // The container's end was requested, so its signals are dropped.
      if (desired === 'stopped') this.#watchdog.dismissWakeups();
    }
    const transition = this.#endOf(kind, before, outcome);
    const isUp = status === 'succeeded' && this.#state.desired === 'running';
    this.#watchdog.resume(isUp ? 'healthy' : undefined, transition);
    showPhase(transition?.memory.state ?? this.#settledPhase(status), this.#state.desired, error);
    this.#recordAttempts += 1;
    const isLast = this.#recordAttempts === MAX_ENDINGS;
    try {
      // Not cancellable with the supervisor: no other process records the operation's end.
      await CancellationScope.nonCancellable(() =>
        this.#record.finishOperation(this.#agent, { id, kind, ...outcome, transition }),
      );
    } catch (error) {
      if (isLast) this.#unrecorded = undefined;
      throw error;
    }
    this.#unrecorded = undefined;
  }

  #beginning(kind: OperationKind, desired: AgentState['desired']): WatchdogTransition | undefined {
    const { watchdog: effect, desired: requested } = operationRules(kind);
    if (!effect || desired === 'stopped') return undefined;
    const state = this.#state.provisioned ? effect.begins : 'starting';
    // A requested start resets the crash count.
    const cleared = requested === 'running' ? { crashes: [], repairAttempts: 0 } : undefined;
    return this.#watchdog.transitionTo(state, 'operation', null, cleared);
  }

  #endOf(
    kind: OperationKind,
    before: WatchdogState,
    { status, error, unharmed, memoryIsMissing }: Outcome,
  ): WatchdogTransition | undefined {
    if (this.#agentIsGone || status === 'cancelled') return undefined;
    const { watchdog: effect, whileStopped } = operationRules(kind);
    const isUp = this.#state.desired === 'running' && this.#state.provisioned;
    if (status === 'succeeded') {
      if (effect && isUp) return this.#watchdog.transitionTo('running', effect.succeeds, null);
      if (whileStopped === 'noted') return undefined;
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
