import { setTimeout as delay } from 'node:timers/promises';
import { poll } from '../../dev/poll.js';
import type { MoneyPlan, MoneyStep } from './money-plan.js';

/** Time limit for a step to begin. */
const STEP_TIMEOUT_MS = 120_000;

/** Kills a part while a step of the round is in progress, once. */
export class KillAtStep {
  readonly #plan: MoneyPlan['kill'];
  readonly #kill: () => Promise<void>;
  #begun: { readonly killed: Promise<void> } | undefined;

  /** @param kill kills the plan's part, and waits until it has restarted. */
  constructor(plan: MoneyPlan['kill'], kill: () => Promise<void>) {
    this.#plan = plan;
    this.#kill = kill;
  }

  /** Notes that a step begins. @returns a promise for the restart, if this step has the kill. */
  begins(step: MoneyStep): Promise<void> | undefined {
    if (this.#plan?.step !== step || this.#begun) return undefined;
    const killed = delay(this.#plan.afterMs).then(this.#kill);
    // `ended` reports a failure.
    killed.catch(() => undefined);
    this.#begun = { killed };
    return killed;
  }

  /** Waits for the restart. @throws Error if the step does not begin. */
  async ended(): Promise<void> {
    if (!this.#plan) return;
    const begun = await poll(() => Promise.resolve(this.#begun), { timeoutMs: STEP_TIMEOUT_MS });
    if (!begun) throw new Error(`the step ${this.#plan.step} did not begin`);
    await begun.killed;
  }
}
