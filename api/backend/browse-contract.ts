import * as z from 'zod';
import { DEFAULT_LOG } from '../../src/workspace/git/log.js';
import { MAX_MESSAGE } from '../../src/workspace/git/sync.js';
import { DEFAULT_DEPTH, MAX_DEPTH, type TreeNode } from '../../src/workspace/files/tree.js';
import { bearer } from '../auth/bearer.js';
import { area } from '../http/area.js';
import type { ConcurrencyLimit } from '../http/in-flight.js';

/** File explorer endpoints (spec 4.14), without handlers: the web API serves them under the same paths. */

/** Timeout of the slowest endpoint, in milliseconds. */
export const BROWSE_MS = 45_000;

/** Each request may hold an answer of several megabytes in memory. */
export const FILES_AT_ONCE: ConcurrencyLimit = { name: 'files', perOwner: 8, total: 100 };

const browse = area({
  tag: 'Files',
  auth: bearer,
  keyScope: 'files',
  atOnce: FILES_AT_ONCE,
  errors: [403, 404, 409, 500, 502, 503],
});

const ok = z.literal(true);
const agentId = z
  .string()
  .max(64)
  .optional()
  .describe("The agent whose workspace to use; the operators' folder if omitted");
const ofWorkspace = { agentId };

const whole = (least: number, usual: number) => z.coerce.number().int().min(least).default(usual);

const entry = {
  type: z.enum(['file', 'folder']),
  name: z.string(),
  path: z.string(),
  truncated: z.literal(true).optional(),
};

/** Expanded level by level, as the depth is bounded: the OpenAPI document then needs no references. */
const node = (levels: number): z.ZodType<TreeNode> =>
  levels === 0
    ? z.strictObject(entry)
    : z.strictObject({ ...entry, children: z.array(node(levels - 1)).optional() });

const path = z.string().describe('Path relative to the workspace, with slashes');

export const browseTree = browse.declare({
  method: 'GET',
  path: '/api/browse/tree',
  operationId: 'listFiles',
  summary: 'List files and folders, folders first; at most 4 levels and 10,000 entries',
  query: z.object({
    ...ofWorkspace,
    depth: whole(1, DEFAULT_DEPTH).describe('Maximum number of levels of folders'),
  }),
  responses: { 200: z.strictObject({ ok, root: node(MAX_DEPTH) }) },
});

export const browseRead = browse.declare({
  method: 'GET',
  path: '/api/browse/read',
  operationId: 'readFile',
  summary: 'Read a file of at most 1 MB, as text, or as base64 if it is not text',
  query: z.object({ ...ofWorkspace, path }),
  responses: {
    200: z.strictObject({
      ok,
      path: z.string(),
      content: z.string(),
      size: z.int(),
      modified: z.iso.datetime(),
      encoding: z.literal('base64').optional(),
    }),
  },
});

export const browseWrite = browse.declare({
  method: 'POST',
  path: '/api/browse/write',
  operationId: 'writeFile',
  summary: 'Write a whole file and create its missing parent folders',
  body: z.object({ ...ofWorkspace, path, content: z.string() }),
  responses: { 200: z.strictObject({ ok, path: z.string(), size: z.int() }) },
});

export const browseGitStatus = browse.declare({
  method: 'GET',
  path: '/api/browse/git-status',
  operationId: 'getGitStatus',
  summary: 'List the changes since the last commit',
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
          z.strictObject({ status: z.string(), path: z.string(), from: z.string().optional() }),
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
  operationId: 'getGitDiff',
  summary: 'Get the diff of one path or of all changes; at most 1 MB each',
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
  operationId: 'getGitLog',
  summary: 'List the last commits, newest first; at most 100',
  query: z.object({
    ...ofWorkspace,
    limit: whole(1, DEFAULT_LOG).describe('Maximum number of commits'),
  }),
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
  operationId: 'syncGit',
  summary: 'Commit all changes and push the commit to origin',
  idempotent: true,
  body: z.object({ ...ofWorkspace, message: z.string().max(MAX_MESSAGE).optional() }),
  responses: {
    200: z.strictObject({
      ok,
      committed: z.boolean(),
      pushed: z.boolean(),
      hash: z.string().nullable(),
      message: z.string(),
      pushError: z.string().optional().describe('Reason for which the push of the commit failed'),
    }),
  },
});

export const BROWSE = [
  browseTree,
  browseRead,
  browseWrite,
  browseGitStatus,
  browseGitDiff,
  browseGitLog,
  browseGitSync,
] as const;
