import type { StepOutcome, ThreadState } from '../types/bus.js';

interface Thread {
  readonly state: ThreadState;
  /** Agent that took the last step. */
  readonly lastBy: string;
}

/** Actions that are steps, each with the state that it leads to. */
const STEPS: ReadonlyMap<string, ThreadState> = new Map([
  ['BOOKING_REQUEST', 'requested'],
  ['BOOKING_COUNTER', 'countered'],
  ['BOOKING_ACCEPT', 'accepted'],
  ['BOOKING_DECLINE', 'declined'],
  ['BOOKING_CANCEL', 'cancelled'],
]);

const ENDED: readonly ThreadState[] = ['declined', 'cancelled'];
const OPEN: readonly ThreadState[] = ['requested', 'countered'];

export interface Step {
  readonly outcome: StepOutcome;
  /** The state after the step; undefined if it is illegal. */
  readonly state: ThreadState | undefined;
}

/**
 * Returns the step of an action; undefined for an action that is no step. Only the party that did not make
 * the last step may accept, counter or decline; either party may cancel.
 *
 * @param thread undefined if there is none yet.
 */
export function stepOf(thread: Thread | undefined, action: string, from: string): Step | undefined {
  const state = STEPS.get(action);
  if (state === undefined) return undefined;
  return isLegal(thread, state, from)
    ? { outcome: 'taken', state }
    : { outcome: 'illegal', state: undefined };
}

function isLegal(thread: Thread | undefined, next: ThreadState, from: string): boolean {
  if (next === 'requested') return thread === undefined;
  if (thread === undefined) return false;
  if (next === 'cancelled') return !ENDED.includes(thread.state);
  return OPEN.includes(thread.state) && thread.lastBy !== from;
}
