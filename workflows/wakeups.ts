import type { ContainerEnd, DockerReturn, KeptWakeups } from './supervise-agent-messages.js';

/** What a supervisor has heard, and has not acted on. */
export class Wakeups {
  /** An operation waits: it ends a watch, and a repair. */
  isInterrupted = false;
  looksNow: boolean;
  ended: ContainerEnd | undefined;
  returned: DockerReturn | undefined;

  constructor(before: KeptWakeups | undefined) {
    this.looksNow = before?.checkNow ?? false;
    this.ended = before?.ended;
    this.returned = before?.returned;
  }

  /** For the next run. */
  get state(): KeptWakeups {
    return {
      ...(this.looksNow && { checkNow: true }),
      ...(this.ended && { ended: this.ended }),
      ...(this.returned && { returned: this.returned }),
    };
  }

  /** Whether a signal asks for a look. */
  get isWoken(): boolean {
    return this.looksNow || this.ended !== undefined || this.returned !== undefined;
  }

  get isUrgent(): boolean {
    return this.isInterrupted || this.isWoken;
  }

  /** Whether something has come up that goes before any look. */
  get isPressed(): boolean {
    return this.isInterrupted || this.returned !== undefined;
  }

  /** An operation has brought up what Docker's absence may have ended. */
  meetReturn(): void {
    if (this.returned) this.returned = { ...this.returned, isMet: true };
  }

  /** What was heard until now does not count any more. */
  dismiss(): void {
    this.looksNow = false;
    this.ended = undefined;
    this.returned = undefined;
  }
}
