import { BadRequestError, NotFoundError } from '../errors.js';
import { NotPlainError, type Entry, type Folder } from './folder.js';
import { SCRATCH } from './segments.js';

export const DEFAULT_DEPTH = 3;
export const MAX_DEPTH = 4;

/** Entries of a whole tree, and of one folder that are looked at. */
const MAX_ENTRIES = 10_000;

/** What is built or fetched, and never listed. */
const EXCLUDED = new Set([
  'node_modules',
  '.git',
  '.next',
  'dist',
  'build',
  '.cache',
  '__pycache__',
  SCRATCH,
]);

export interface TreeNode {
  readonly type: 'file' | 'folder';
  readonly name: string;
  /** From the workspace on; empty for the workspace itself. */
  readonly path: string;
  /** Of a folder that was looked into: folders first, each kind in the order of its names. */
  readonly children?: TreeNode[];
  /** Some of its entries are left out, because there are too many in all. */
  readonly truncated?: true;
}

interface Growing {
  type: 'file' | 'folder';
  name: string;
  path: string;
  children?: Growing[];
  truncated?: true;
}

const { compare } = new Intl.Collator('en', { numeric: false });

/** The order does not depend on who asks, or where. */
function byKindAndName(a: Entry, b: Entry): number {
  if (a.kind !== b.kind) return a.kind === 'folder' ? -1 : 1;
  return compare(a.name, b.name) || (a.name < b.name ? -1 : 1);
}

/**
 * What is in the workspace, so many levels deep. Level by level, so that what is left out of a large
 * one lies deepest.
 */
export async function treeOf(root: Folder, depth: number, signal?: AbortSignal): Promise<TreeNode> {
  if (!Number.isInteger(depth) || depth < 1) {
    throw new BadRequestError('depth must be a whole number from 1 on');
  }
  const tree: Growing = { type: 'folder', name: 'workspace', path: '' };
  let level = [tree];
  let left = MAX_ENTRIES;
  for (let at = 0; at < Math.min(depth, MAX_DEPTH); at += 1) {
    const next: Growing[] = [];
    for (const node of level) {
      signal?.throwIfAborted();
      const listed = await listedOf(root, node, left, signal);
      if (!listed) continue;
      left -= listed.entries.length;
      node.children = listed.entries.map(({ kind, name }) => ({
        type: kind === 'folder' ? 'folder' : 'file',
        name,
        path: node.path === '' ? name : `${node.path}/${name}`,
      }));
      if (listed.truncated) node.truncated = true;
      next.push(...node.children.filter(({ type }) => type === 'folder'));
    }
    level = next;
  }
  return tree;
}

/** Undefined for a folder that is none any more. */
async function listedOf(
  root: Folder,
  { path }: Growing,
  most: number,
  signal: AbortSignal | undefined,
): Promise<{ entries: Entry[]; truncated: boolean } | undefined> {
  const entries: Entry[] = [];
  try {
    const truncated = await root.within(path === '' ? [] : path.split('/'), async (folder) => {
      for await (const entry of folder.entries()) {
        signal?.throwIfAborted();
        if (entry.kind === 'other') continue;
        if (entry.kind === 'folder' && EXCLUDED.has(entry.name)) continue;
        if (entries.length === most) return true;
        entries.push(entry);
      }
      return false;
    });
    return { entries: entries.sort(byKindAndName), truncated };
  } catch (error) {
    if (error instanceof NotFoundError || error instanceof NotPlainError) return undefined;
    throw error;
  }
}
