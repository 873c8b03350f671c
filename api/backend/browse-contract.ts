import * as z from 'zod';
import { DEFAULT_LOG } from '../../src/workspace/git/log.js';
import { MAX_MESSAGE } from '../../src/workspace/git/sync.js';
import { DEFAULT_DEPTH, MAX_DEPTH, type TreeNode } from '../../src/workspace/files/tree.js';
import { bearer } from '../auth/bearer.js';
import { area } from '../http/area.js';
import type { ConcurrencyLimit } from '../http/under-way.js';

/*
 * The file explorer (spec 4.14), which the web API has under the same paths: declared here without its
 * handlers, for both sides.
 */

/** Milliseconds that the slowest of them may take. */
export const BROWSE_MS = 45_000;

/** Each may hold megabytes of an answer. */
export const FILES_AT_ONCE: ConcurrencyLimit = { name: 'files', max: 8, most: 100 };

const browse = area({
  ...{ tag: 'Files', auth: bearer, atOnce: FILES_AT_ONCE },
  errors: [403, 404, 409, 500, 502, 503],
});

const ok = z.literal(true);
const agentId = z
  .string()
  .max(64)
  .optional()
  .describe('Whose workspace; none is the folder of the operators');
const ofWorkspace = { agentId };

const whole = (least: number, usual: number) => z.coerce.number().int().min(least).default(usual);

const entry = {
  type: z.enum(['file', 'folder']),
  name: z.string(),
  path: z.string(),
  truncated: z.literal(true).optional(),
};

/** Level by level, because there are only so many: who reads the document needs no references. */
const node = (levels: number): z.ZodType<TreeNode> =>
  levels === 0
    ? z.strictObject(entry)
    : z.strictObject({ ...entry, children: z.array(node(levels - 1)).optional() });

const path = z.string().describe('Relative to the workspace, with slashes');

export const browseTree = browse.declare({
  method: 'GET',
  path: '/api/browse/tree',
  summary: 'Files and folders, folders first; at most 4 levels and 10,000 entries',
  query: z.object({ ...ofWorkspace, depth: whole(1, DEFAULT_DEPTH) }),
  responses: { 200: z.strictObject({ ok, root: node(MAX_DEPTH) }) },
});

export const browseRead = browse.declare({
  method: 'GET',
  path: '/api/browse/read',
  summary: 'A file of at most 1 MB: text, or base64 of what is none',
  query: z.object({ ...ofWorkspace, path }),
  responses: {
    200: z.strictObject({
      ok,
      path: z.string(),
      content: z.string(),
      size: z.number(),
      modified: z.iso.datetime(),
      encoding: z.literal('base64').optional(),
    }),
  },
});

export const browseWrite = browse.declare({
  method: 'POST',
  path: '/api/browse/write',
  summary: 'Write a file whole, and the folders on the way to it',
  body: z.object({ ...ofWorkspace, path, content: z.string() }),
  responses: { 200: z.strictObject({ ok, path: z.string(), size: z.number() }) },
});

export const browseGitStatus = browse.declare({
  method: 'GET',
  path: '/api/browse/git-status',
  summary: 'What differs from the last commit',
  query: z.object(ofWorkspace),
  responses: {
    200: z.union([
      z.strictObject({ ok, isGitRepo: z.literal(false) }),
      z.strictObject({
        ok,
        isGitRepo: ok,
        branch: z.string(),
        remote: z.string().nullable(),
        changes: z.array(
          z.strictObject({
            status: z.string(),
            path: z.string(),
            from: z.string().optional(),
          }),
        ),
        truncated: ok.optional(),
        hasChanges: z.boolean(),
      }),
    ]),
  },
});

export const browseGitDiff = browse.declare({
  method: 'GET',
  path: '/api/browse/git-diff',
  summary: 'How it differs, of one path or all; at most 1 MB each',
  query: z.object({ ...ofWorkspace, path: path.optional() }),
  responses: {
    200: z.strictObject({
      ok,
      unstaged: z.string().nullable(),
      staged: z.string().nullable(),
      truncated: ok.optional(),
    }),
  },
});

export const browseGitLog = browse.declare({
  method: 'GET',
  path: '/api/browse/git-log',
  summary: 'The last commits, newest first; at most 100',
  query: z.object({ ...ofWorkspace, limit: whole(1, DEFAULT_LOG) }),
  responses: {
    200: z.strictObject({
      ok,
      commits: z.array(
        z.strictObject({
          hash: z.string(),
          shortHash: z.string(),
          subject: z.string(),
          author: z.string(),
          date: z.string(),
        }),
      ),
    }),
  },
});

export const browseGitSync = browse.declare({
  method: 'POST',
  path: '/api/browse/git-sync',
  summary: 'Commit all that differs, and push it to origin',
  idempotent: true,
  body: z.object({ ...ofWorkspace, message: z.string().max(MAX_MESSAGE).optional() }),
  responses: {
    200: z.strictObject({
      ok,
      committed: z.boolean(),
      pushed: z.boolean(),
      hash: z.string().nullable(),
      message: z.string(),
      pushError: z.string().optional().describe('Why what was committed is not pushed'),
    }),
  },
});

/** All of them. */
export const BROWSE = [
  browseTree,
  browseRead,
  browseWrite,
  browseGitStatus,
  browseGitDiff,
  browseGitLog,
  browseGitSync,
] as const;
