import { StringDecoder } from 'node:string_decoder';
import type { GitView } from './git-view.js';

/** Maximum bytes of each of the two diffs. */
const MAX_DIFF_BYTES = 1024 * 1024;

export interface Diff {
  /** Null if nothing differs. */
  readonly unstaged: string | null;
  readonly staged: string | null;
  /** True if one of the diffs was cut. */
  readonly truncated?: true;
}

/** Returns the staged and unstaged differences of these paths; of all if empty. */
export async function diffOf({ git }: GitView, paths: readonly string[]): Promise<Diff> {
  const run = (...which: readonly string[]) =>
    git(
      [
        ...['diff', ...which, '--no-ext-diff', '--no-textconv', '--no-color', '--find-renames'],
        ...['--ignore-submodules=all', '--src-prefix=a/', '--dst-prefix=b/', '--', ...paths],
      ],
      { cutAt: MAX_DIFF_BYTES },
    );
  const [unstaged, staged] = await Promise.all([run(), run('--cached')]);
  return {
    unstaged: textOrNull(unstaged.output),
    staged: textOrNull(staged.output),
    ...((unstaged.isCut || staged.isCut) && { truncated: true }),
  };
}

/** Decodes the text, without a partial character at its end. */
function textOrNull(bytes: Buffer): string | null {
  return new StringDecoder('utf8').write(bytes) || null;
}
