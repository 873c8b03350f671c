import { BadRequestError, NotFoundError } from '../../lib/errors.js';
import { NotPlainError, type Folder } from './folder.js';
import { ListingRoom } from './listing.js';
import { SCRATCH } from './segments.js';

export const DEFAULT_DEPTH = 3;
export const MAX_DEPTH = 4;

/** Folders of build output and dependencies, never listed. */
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
  /** Path from the workspace; empty for the workspace itself. */
  readonly path: string;
  /** Entries of a listed folder: folders first, then each kind by name. */
  readonly children?: TreeNode[];
  /** True if entries are missing because the answer is full. */
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

/** Compares by kind, then by name, independent of locale. */
function byKindAndName(a: Growing, b: Growing): number {
  if (a.type !== b.type) return a.type === 'folder' ? -1 : 1;
  return compare(a.name, b.name) || (a.name < b.name ? -1 : 1);
}

/** Lists the workspace by levels, so that entries missing from a large one are the deepest. */
export async function treeOf(root: Folder, depth: number, signal?: AbortSignal): Promise<TreeNode> {
  if (!Number.isInteger(depth) || depth < 1) {
    throw new BadRequestError('depth must be a whole number of at least 1');
  }
  const tree: Growing = { type: 'folder', name: 'workspace', path: '' };
  let level = [tree];
  const room = new ListingRoom();
  for (let at = 0; at < Math.min(depth, MAX_DEPTH); at += 1) {
    const next: Growing[] = [];
    for (const node of level) {
      signal?.throwIfAborted();
      const listed = await listedOf(root, node, room, signal);
      if (!listed) continue;
      node.children = listed.nodes;
      if (listed.truncated) node.truncated = true;
      next.push(...node.children.filter(({ type }) => type === 'folder'));
    }
    level = next;
  }
  return tree;
}

/** Lists a folder; undefined if it is no longer a folder. */
async function listedOf(
  root: Folder,
  { path }: Growing,
  room: ListingRoom,
  signal: AbortSignal | undefined,
): Promise<{ nodes: Growing[]; truncated: boolean } | undefined> {
  const nodes: Growing[] = [];
  try {
    const truncated = await root.within(path === '' ? [] : path.split('/'), async (folder) => {
      for await (const { kind, name } of folder.entries()) {
        signal?.throwIfAborted();
        if (kind === 'other') continue;
        if (kind === 'folder' && EXCLUDED.has(name)) continue;
        const node = { type: kind, name, path: path === '' ? name : `${path}/${name}` };
        if (!room.take(node)) return true;
        nodes.push(node);
      }
      return false;
    });
    return { nodes: nodes.sort(byKindAndName), truncated };
  } catch (error) {
    if (error instanceof NotFoundError || error instanceof NotPlainError) return undefined;
    throw error;
  }
}
