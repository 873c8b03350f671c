import * as z from 'zod';
import { isErrorCode, type ErrorCode } from '../lib/error-codes.js';
import type { Diff } from './git/diff.js';
import type { Commit } from './git/log.js';
import type { Status } from './git/status.js';
import type { ReadFile, StoredFile } from './files/files.js';
import type { TreeNode } from './files/tree.js';
import type { MemoryListing, MemoryMatch } from './memory/memory-listing.js';
import type { Pushed, Synced, WrittenFile } from './workspace.js';

/* Calls to a workspace in a container or on another host, and their answers, as JSON. */

const text = z.string();

export const workspaceCall = z.discriminatedUnion('what', [
  z.strictObject({ what: z.literal('tree'), depth: z.number() }),
  z.strictObject({ what: z.literal('read'), path: text }),
  z.strictObject({
    what: z.literal('write'),
    path: text,
    content: text,
    etag: text.optional(),
  }),
  z.strictObject({
    what: z.literal('append'),
    path: text,
    content: text,
    etag: text.optional(),
  }),
  z.strictObject({ what: z.literal('memory') }),
  z.strictObject({ what: z.literal('search'), query: text }),
  z.strictObject({ what: z.literal('status') }),
  z.strictObject({ what: z.literal('diff'), path: text.optional() }),
  z.strictObject({ what: z.literal('log'), limit: z.number() }),
  z.strictObject({ what: z.literal('sync'), message: text.optional() }),
]);

export type WorkspaceCall = z.infer<typeof workspaceCall>;
export type WorkspaceOperation = WorkspaceCall['what'];

const WRITES: ReadonlySet<WorkspaceOperation> = new Set(['write', 'append', 'sync']);

export const isWriting = ({ what }: WorkspaceCall): boolean => WRITES.has(what);

/** Reports whether a call may be made again after a lost answer: its second run does no more than its first. */
export const isRepeatable = (call: WorkspaceCall): boolean =>
  !isWriting(call) || (call.what === 'write' && call.etag === undefined);

export interface WorkspaceAnswers {
  readonly tree: TreeNode;
  readonly read: ReadFile;
  readonly write: WrittenFile;
  readonly append: StoredFile;
  readonly memory: MemoryListing;
  readonly search: readonly MemoryMatch[];
  readonly status: Status | { readonly isGitRepo: false };
  readonly diff: Diff;
  readonly log: readonly Commit[];
  readonly sync: Synced;
}

const yes = z.literal(true);

const node: z.ZodType<TreeNode> = z.object({
  type: z.enum(['file', 'folder']),
  name: text,
  path: text,
  get children() {
    return z.array(node).optional();
  },
  truncated: yes.optional(),
});

const pushed = { pushed: z.boolean(), pushError: text.optional() };

const ANSWERS: { readonly [W in WorkspaceOperation]: z.ZodType<WorkspaceAnswers[W]> } = {
  tree: node,
  read: z.object({
    path: text,
    content: text,
    size: z.number(),
    modified: text,
    encoding: z.literal('base64').optional(),
  }),
  write: z.object({
    path: text,
    size: z.number(),
    modified: text.optional(),
    etag: text.optional(),
  }),
  append: z.object({ path: text, size: z.number(), modified: text, etag: text }),
  memory: z.object({
    files: z.array(
      z.object({ path: text, size: z.number(), modified: text, etag: text.nullable() }),
    ),
    truncated: yes.optional(),
  }),
  search: z.array(z.object({ path: text, line: z.number(), text })),
  status: z.union([
    z.object({ isGitRepo: z.literal(false) }),
    z.object({
      isGitRepo: yes,
      branch: text,
      remote: text.nullable(),
      changes: z.array(z.object({ status: text, path: text, from: text.optional() })),
      truncated: yes.optional(),
      hasChanges: z.boolean(),
    }),
  ]),
  diff: z.object({ unstaged: text.nullable(), staged: text.nullable(), truncated: yes.optional() }),
  log: z.array(z.object({ hash: text, shortHash: text, subject: text, author: text, date: text })),
  sync: z.object({ committed: z.boolean(), ...pushed, hash: text.nullable(), message: text }),
};
const pushAnswer = z.object({ value: z.object(pushed) });

/** A refusal, with the fields of its ServiceError. */
const refusal = z.object({
  status: z.number().int().min(400).max(599),
  message: text,
  // A host of another release may name an unknown code.
  code: z.custom<ErrorCode>(isErrorCode).optional().catch(undefined),
  facts: z.record(text, z.unknown()).optional(),
});
export type WorkspaceRefusal = z.infer<typeof refusal>;

const refused = z.object({ refused: refusal });

export const readRefusal = (answer: unknown): WorkspaceRefusal | undefined =>
  refused.safeParse(answer).data?.refused;

/** Parses an answer; returns undefined if it does not match the call. */
export function readAnswer<W extends WorkspaceOperation>(
  what: W,
  answer: unknown,
): WorkspaceAnswers[W] | undefined {
  const found = z.object({ value: z.unknown() }).safeParse(answer).data;
  return ANSWERS[what].safeParse(found?.value).data;
}

export const readPushed = (answer: unknown): Pushed | undefined =>
  pushAnswer.safeParse(answer).data?.value;
