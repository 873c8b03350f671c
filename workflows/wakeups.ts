import type { ContainerEnd, DockerReturn, KeptWakeups } from './supervise-agent-messages.js';

/** Signals that a supervisor has received and not handled yet. */
export class Wakeups {
  /** A pending operation interrupts a watch or a repair. */
  isInterrupted = false;
  checksNow: boolean;
  ended: ContainerEnd | undefined;
  returned: DockerReturn | undefined;

  constructor(before: KeptWakeups | undefined) {
    this.checksNow = before?.checkNow ?? false;
    this.ended = before?.ended;
    this.returned = before?.returned;
  }

  get state(): KeptWakeups {
    return {
      ...(this.checksNow && { checkNow: true }),
      ...(this.ended && { ended: this.ended }),
      ...(this.returned && { returned: this.returned }),
    };
  }

  get hasSignal(): boolean {
    return this.checksNow || this.ended !== undefined || this.returned !== undefined;
  }

  get isUrgent(): boolean {
    return this.isInterrupted || this.hasSignal;
  }

  /** Reports whether work that precedes any check is pending. */
  get hasPriorityWork(): boolean {
    return this.isInterrupted || this.returned !== undefined;
  }

  /** Records that an operation has restarted the agent after Docker's outage. */
  markReturnHandled(): void {
    if (this.returned) this.returned = { ...this.returned, isMet: true };
  }

  dismiss(): void {
    this.checksNow = false;
    this.ended = undefined;
    this.returned = undefined;
  }
}
