import type { SkillRemoval } from './skills/remove-skills.js';
import type { WorkspaceCall, WorkspaceRefusal } from './workspace-call.js';

/* Protocol between a process and the helper in a container, whose program has no library: lines of JSON. */

/** Socket of the helper in its container. */
export const HELPER_SOCKET = '/tmp/workspace.sock';

/** Folder for git's views in the container. */
export const HELPER_VIEWS = '/tmp/views';

/** Milliseconds that a helper waits for the next request before it ends. */
export const HELPER_IDLE_MS = 60_000;

/** A further call to helpers that can reach remotes: push what a sync has committed. */
export interface PushCall {
  readonly what: 'push';
  readonly hash: string;
}

/** A further call that only the platform's own steps make: remove skills from the state of a stopped agent. */
export interface RemoveSkillsCall extends SkillRemoval {
  readonly what: 'remove-skills';
}

export type HelperCall = WorkspaceCall | PushCall | RemoveSkillsCall;

export interface HelperTask {
  /** Path of the volume, and the folder names from there to the workspace. */
  readonly volume: string;
  readonly within: readonly string[];
  /** Folder for git's temporary folders. */
  readonly views: string;
  readonly idleMs: number;
  readonly socket: string;
  /** Addresses that a helper with network access may reach although they are not public. */
  readonly allow?: readonly string[];
}

/** A request, or a notice that its client has stopped waiting. */
export type HelperRequest =
  | { readonly id: number; readonly call: HelperCall }
  | { readonly id: number; readonly left: true };

/** The id comes first, so that a proxy need not parse the rest. */
export type HelperAnswer =
  | { readonly id: number; readonly value: unknown }
  | { readonly id: number; readonly refused: WorkspaceRefusal };
