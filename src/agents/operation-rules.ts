/** What can be done to an agent. Each is an Update of its supervisor, but for the first. */
export const OPERATION_KINDS = [
  'provision',
  'start',
  'stop',
  'restart',
  'configure',
  'update',
  'repair',
  'reset-memory',
  'restore',
  'delete',
] as const;

export type OperationKind = (typeof OPERATION_KINDS)[number];

export const OPERATION_STATUSES = [
  'requested',
  'running',
  'succeeded',
  'failed',
  'cancelled',
] as const;

export type OperationStatus = (typeof OPERATION_STATUSES)[number];

/** What becomes of a request for an operation while another one may be running. */
export type Admission = 'run' | 'join' | 'preempt' | 'conflict';

/**
 * One operation at a time. The same one asked for twice is one operation; a deletion is let in
 * always, and ends what runs.
 */
export function admit(requested: OperationKind, running: OperationKind | undefined): Admission {
  if (running === undefined) return 'run';
  if (running === requested) return 'join';
  return requested === 'delete' ? 'preempt' : 'conflict';
}
