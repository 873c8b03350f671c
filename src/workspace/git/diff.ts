import { StringDecoder } from 'node:string_decoder';
import type { GitView } from './git-view.js';

/** Bytes of each of the two. */
const MAX_DIFF_BYTES = 1024 * 1024;

export interface Diff {
  /** Null where nothing differs. */
  readonly unstaged: string | null;
  readonly staged: string | null;
  /** One of them was cut. */
  readonly truncated?: true;
}

/** @param paths of which alone it tells; all when empty. */
export async function diffOf({ git }: GitView, paths: readonly string[]): Promise<Diff> {
  const ask = (...which: readonly string[]) =>
    git(
      [
        ...['diff', ...which, '--no-ext-diff', '--no-textconv', '--no-color', '--find-renames'],
        ...['--ignore-submodules=all', '--src-prefix=a/', '--dst-prefix=b/', '--', ...paths],
      ],
      { cutAt: MAX_DIFF_BYTES },
    );
  const [unstaged, staged] = await Promise.all([ask(), ask('--cached')]);
  return {
    unstaged: textOrNull(unstaged.output),
    staged: textOrNull(staged.output),
    ...((unstaged.isCut || staged.isCut) && { truncated: true }),
  };
}

/** Half a character at the end is left out. */
function textOrNull(bytes: Buffer): string | null {
  return new StringDecoder('utf8').write(bytes) || null;
}
