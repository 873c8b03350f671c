import type { WatchdogCause, WatchdogState } from './watchdog.js';

/** What the watchdog makes of an operation, where it leaves the agent running or should have. */
interface WatchdogEffect {
  readonly begins: WatchdogState;
  readonly succeeds: WatchdogCause;
  readonly fails: { readonly state: WatchdogState; readonly cause: WatchdogCause };
}

interface OperationRules {
  /** For people: in the API's description, and beside the Update in the Temporal UI. */
  readonly summary: string;
  /**
   * How it is asked for: by `POST /api/agents/:id/<kind>` and nothing more, by an endpoint of its own,
   * which may take input, or with the creation of the agent.
   */
  readonly asked: 'plainly' | 'by-own-endpoint' | 'at-creation';
  /** What operators see while it runs. */
  readonly phase: string;
  /** What is wanted from here on, also when it fails; null leaves it as it is. */
  readonly desired: 'running' | 'stopped' | 'deleted' | null;
  /** What it does while another one runs: the same one joins it in any case. */
  readonly whileBusy: 'conflicts' | 'preempts';
  /** What it is to an agent that does not run: done all the same, or only noted for its next start. */
  readonly whileDown: 'done' | 'noted';
  /** What becomes of a request that did not reach the supervisor. */
  readonly refused: 'withdrawn' | 'kept';
  /** Null: until it has succeeded, the agent is what it was. */
  readonly watchdog: WatchdogEffect | null;
}

// What is left of a start that failed is looked at next, and judged as it is found.
const STARTS: WatchdogEffect = {
  begins: 'starting',
  succeeds: 'healthy',
  fails: { state: 'starting', cause: 'start_failed' },
};
const REPAIRS: WatchdogEffect = {
  begins: 'repairing',
  succeeds: 'repaired',
  fails: { state: 'crash_loop', cause: 'repair_failed' },
};

/** What most have in common. */
const ORDINARY = {
  asked: 'plainly',
  desired: null,
  whileBusy: 'conflicts',
  whileDown: 'done',
  refused: 'withdrawn',
  watchdog: STARTS,
} satisfies Partial<OperationRules>;

/** Those that leave an agent running that was not. */
const BRINGS_UP = { ...ORDINARY, desired: 'running' } satisfies Partial<OperationRules>;

/** What can be done to an agent. How, is in `workflows/operation-steps.ts`. */
export const OPERATIONS = {
  provision: {
    ...BRINGS_UP,
    summary: 'Create an agent',
    phase: 'provisioning',
    asked: 'at-creation',
    // The creation was told as done.
    refused: 'kept',
  },
  start: { ...BRINGS_UP, summary: 'Start an agent', phase: 'starting' },
  stop: {
    ...ORDINARY,
    summary: 'Stop an agent',
    phase: 'stopping',
    desired: 'stopped',
    watchdog: null,
  },
  restart: { ...BRINGS_UP, summary: 'Restart an agent', phase: 'restarting' },
  configure: {
    ...ORDINARY,
    summary: 'Configure an agent; it goes back by itself when that fails',
    phase: 'configuring',
    asked: 'by-own-endpoint',
    whileDown: 'noted',
  },
  update: {
    ...ORDINARY,
    summary: 'Update an agent; it goes back by itself when that fails',
    phase: 'updating',
    asked: 'by-own-endpoint',
    whileDown: 'noted',
  },
  repair: {
    ...BRINGS_UP,
    summary: 'Repair an agent: kill its gateway, start it again, verify that it is well',
    phase: 'repairing',
    watchdog: REPAIRS,
  },
  'reset-memory': {
    ...ORDINARY,
    summary: 'Archive the memory of an agent, and give it an empty one',
    phase: 'resetting memory',
  },
  restore: {
    ...ORDINARY,
    summary: 'Give an agent an archived memory; the present one is archived',
    phase: 'restoring memory',
    asked: 'by-own-endpoint',
  },
  'begin-anew': {
    ...ORDINARY,
    summary: 'Give an agent whose memory is missing an empty one',
    phase: 'beginning anew',
  },
  delete: {
    summary: 'Remove an agent and all that belongs to it',
    phase: 'deleting',
    asked: 'by-own-endpoint',
    desired: 'deleted',
    whileBusy: 'preempts',
    whileDown: 'done',
    // Once written down it happens.
    refused: 'kept',
    watchdog: null,
  },
} satisfies Record<string, OperationRules>;

export type OperationKind = keyof typeof OPERATIONS;

/** The kinds of operation of which `Field` of the table is `Value`. */
type KindWith<Field extends keyof OperationRules, Value> = {
  [Kind in OperationKind]: (typeof OPERATIONS)[Kind][Field] extends Value ? Kind : never;
}[OperationKind];

/** What a supervisor is asked for by an Update of that name. */
export type RequestedKind = KindWith<'asked', 'plainly' | 'by-own-endpoint'>;

/** What is asked for by `POST /api/agents/:id/<kind>` and nothing more. */
export type PlainKind = KindWith<'asked', 'plainly'>;

// The keys of this very constant.
export const OPERATION_KINDS = Object.keys(OPERATIONS) as [OperationKind, ...OperationKind[]];
export const REQUESTED_KINDS = OPERATION_KINDS.filter(
  (kind): kind is RequestedKind => operationRules(kind).asked !== 'at-creation',
);
export const PLAIN_KINDS = OPERATION_KINDS.filter(
  (kind): kind is PlainKind => operationRules(kind).asked === 'plainly',
);

/** The line of the table, as any of them may be. */
export function operationRules(kind: OperationKind): OperationRules {
  return OPERATIONS[kind];
}

export const OPERATION_STATUSES = [
  'requested',
  'running',
  'succeeded',
  'failed',
  'cancelled',
] as const;

export type OperationStatus = (typeof OPERATION_STATUSES)[number];

export type OperationEndStatus = Exclude<OperationStatus, 'requested' | 'running'>;

/** What becomes of a request for an operation while another one may be running. */
export type Admission = 'run' | 'join' | 'preempt' | 'conflict';

/**
 * One operation at a time. The same one asked for twice is one operation; a deletion is let in
 * always, and ends what runs.
 */
export function admit(requested: OperationKind, running: OperationKind | undefined): Admission {
  if (running === undefined) return 'run';
  if (running === requested) return 'join';
  return operationRules(requested).whileBusy === 'preempts' ? 'preempt' : 'conflict';
}
