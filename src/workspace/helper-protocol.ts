import type { WorkspaceCall, WorkspaceRefusal } from './workspace-call.js';

/*
 * What goes between a process and the helper in a container, whose program has no library: lines of JSON.
 */

/** Where the helper listens, in its container. */
export const HELPER_SOCKET = '/tmp/workspace.sock';

/** Where git works there. */
export const HELPER_VIEWS = '/tmp/views';

/** Milliseconds for which a helper waits for the next request, and then ends by itself. */
export const HELPER_IDLE_MS = 60_000;

/** What the platform asks besides, of a helper that reaches remotes: to push what a sync has committed. */
export interface PushCall {
  readonly what: 'push';
  readonly hash: string;
}

export type HelperCall = WorkspaceCall | PushCall;

/** What a helper is told at its start. */
export interface HelperTask {
  /** Where the volume is, and the names of the folders from there to the workspace. */
  readonly volume: string;
  readonly within: readonly string[];
  /** Where git has its temporary folders. */
  readonly views: string;
  readonly idleMs: number;
  readonly socket: string;
  /** Of one that reaches remotes: what may be reached although it is not public. */
  readonly allow?: readonly string[];
}

/** A request, or that nobody waits for its answer any more. */
export type HelperRequest =
  | { readonly id: number; readonly call: HelperCall }
  | { readonly id: number; readonly left: true };

/** The id comes first: who sends an answer on does not read the rest. */
export type HelperAnswer =
  | { readonly id: number; readonly value: unknown }
  | { readonly id: number; readonly refused: WorkspaceRefusal };
