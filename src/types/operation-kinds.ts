import type { WatchdogCause, WatchdogState } from './watchdog.js';

/** The watchdog's reaction to an operation after which the agent should run. */
interface WatchdogEffect {
  readonly begins: WatchdogState;
  readonly succeeds: WatchdogCause;
  readonly fails: { readonly state: WatchdogState; readonly cause: WatchdogCause };
}

interface OperationRules {
  /** Text for users, in the API's description and beside the Update in the Temporal UI. */
  readonly summary: string;
  /** Requested by `POST /api/agents/:id/<kind>` without input, an endpoint of its own, or the creation. */
  readonly requestedBy: 'plainly' | 'by-own-endpoint' | 'at-creation';
  /** The phase shown to operators while the operation runs. */
  readonly phase: string;
  /** The desired state from the operation's beginning, even if it fails; null leaves it unchanged. */
  readonly desired: 'running' | 'stopped' | 'deleted' | null;
  /** Behavior while a different operation runs. An operation of the same kind is always joined. */
  readonly whileBusy: 'conflicts' | 'preempts';
  /** Effect on an agent that does not run: carried out anyway, or only recorded for its next start. */
  readonly whileStopped: 'done' | 'noted';
  /** Outcome of a request that did not reach the supervisor. */
  readonly onRefusal: 'withdrawn' | 'kept';
  /** True if container, configuration or memory are replaced, so that a verification no longer holds. */
  readonly replaces: boolean;
  /** Null if the agent stays unchanged until the operation succeeds. */
  readonly watchdog: WatchdogEffect | null;
}

// After a failed start the watchdog probes the agent next and judges it by what it observes.
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

/** Rules shared by most operations. */
const ORDINARY = {
  requestedBy: 'plainly',
  desired: null,
  whileBusy: 'conflicts',
  whileStopped: 'done',
  onRefusal: 'withdrawn',
  replaces: false,
  watchdog: STARTS,
} satisfies Partial<OperationRules>;

const BRINGS_UP = { ...ORDINARY, desired: 'running' } satisfies Partial<OperationRules>;

/** The operations on agents. Their steps are in `workflows/operation-steps.ts`. */
export const OPERATIONS = {
  provision: {
    ...BRINGS_UP,
    summary: 'Create an agent',
    phase: 'provisioning',
    requestedBy: 'at-creation',
    // The API has already confirmed the creation.
    onRefusal: 'kept',
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
    summary: 'Configure an agent, with rollback on failure',
    phase: 'configuring',
    replaces: true,
    requestedBy: 'by-own-endpoint',
    whileStopped: 'noted',
  },
  update: {
    ...ORDINARY,
    summary: 'Update an agent, with rollback on failure',
    phase: 'updating',
    replaces: true,
    requestedBy: 'by-own-endpoint',
    whileStopped: 'noted',
  },
  repair: {
    ...BRINGS_UP,
    summary: 'Repair an agent: kill its gateway, start it again, check its health',
    phase: 'repairing',
    watchdog: REPAIRS,
  },
  'reset-memory': {
    ...ORDINARY,
    summary: "Archive an agent's memory and replace it with an empty one",
    phase: 'resetting memory',
    replaces: true,
  },
  restore: {
    ...ORDINARY,
    summary: 'Restore an archived memory, archiving the present one',
    phase: 'restoring memory',
    replaces: true,
    requestedBy: 'by-own-endpoint',
  },
  'reset-empty': {
    ...ORDINARY,
    summary: 'Replace the missing memory of an agent with an empty one',
    phase: 'replacing missing memory',
    replaces: true,
  },
  delete: {
    summary: 'Remove an agent and all its data',
    phase: 'deleting',
    requestedBy: 'by-own-endpoint',
    desired: 'deleted',
    whileBusy: 'preempts',
    whileStopped: 'done',
    // A stored removal is always carried out.
    onRefusal: 'kept',
    replaces: true,
    watchdog: null,
  },
} satisfies Record<string, OperationRules>;

export type OperationKind = keyof typeof OPERATIONS;

/** The operation kinds whose rule `Field` has the type `Value`. */
type KindWith<Field extends keyof OperationRules, Value> = {
  [Kind in OperationKind]: (typeof OPERATIONS)[Kind][Field] extends Value ? Kind : never;
}[OperationKind];

/** The kinds that are requested from a supervisor by an Update of the same name. */
export type RequestedKind = KindWith<'requestedBy', 'plainly' | 'by-own-endpoint'>;

/** The kinds requested by `POST /api/agents/:id/<kind>` without input. */
export type PlainKind = KindWith<'requestedBy', 'plainly'>;

// Safe cast: these are the keys of the constant above.
export const OPERATION_KINDS = Object.keys(OPERATIONS) as [OperationKind, ...OperationKind[]];
export const REQUESTED_KINDS = OPERATION_KINDS.filter(
  (kind): kind is RequestedKind => operationRules(kind).requestedBy !== 'at-creation',
);
export const PLAIN_KINDS = OPERATION_KINDS.filter(
  (kind): kind is PlainKind => operationRules(kind).requestedBy === 'plainly',
);

/** Returns the rules of an operation, widened to their common type. */
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

/** Outcomes of a request while another operation may be running. */
export type Admission = 'run' | 'join' | 'preempt' | 'conflict';

/** Decides on a request: one operation runs at a time, requests for its kind join, a deletion ends it. */
export function admit(requested: OperationKind, running: OperationKind | undefined): Admission {
  if (running === undefined) return 'run';
  if (running === requested) return 'join';
  return operationRules(requested).whileBusy === 'preempts' ? 'preempt' : 'conflict';
}
