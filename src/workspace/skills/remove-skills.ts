import { NotFoundError } from '../../lib/errors.js';
import { NotPlainError, type Folder } from '../files/folder.js';
import { SKILL_LIST } from './skill-places.js';

/** Maximum number of entries that are removed with a skill; the agent may have added some. */
const MAX_ENTRIES = 10_000;
const MAX_DEPTH = 32;

export interface SkillRemoval {
  /** Names of folders in the folder of skills. */
  readonly names: readonly string[];
  /** Content of the list afterwards. */
  readonly list: string;
}

/** Removes skills with all that is in their folders, and then rewrites the list. May run twice. */
export async function removeSkills(state: Folder, { list, names }: SkillRemoval): Promise<void> {
  for (const name of names) {
    const left = { entries: MAX_ENTRIES };
    await within(state, 'skills', (skills) => removeEntry(skills, name, left, MAX_DEPTH));
  }
  await state.remove(SKILL_LIST);
  await state.create(SKILL_LIST, Buffer.from(list), { mode: 0o600 });
}

async function removeEntry(
  folder: Folder,
  name: string,
  left: { entries: number },
  depth: number,
): Promise<void> {
  const there = await folder.stat(name);
  if (!there) return;
  if (!there.isDirectory()) return folder.remove(name);
  await within(folder, name, async (inner) => {
    // OpenClaw loads a folder with this file: removed first, in case the rest is too much.
    if ((await inner.stat('SKILL.md'))?.isDirectory() === false) await inner.remove('SKILL.md');
    if (depth === 0) return;
    for await (const entry of inner.entries()) {
      if (left.entries-- <= 0) return;
      await removeEntry(inner, entry.name, left, depth - 1);
    }
  });
  await folder.removeEmpty(name);
}

/** Calls `use` with a folder; a missing one, or a link in its place, has nothing of the platform. */
async function within(
  folder: Folder,
  name: string,
  use: (folder: Folder) => Promise<void>,
): Promise<void> {
  try {
    await folder.within([name], use);
  } catch (error) {
    if (!(error instanceof NotFoundError || error instanceof NotPlainError)) throw error;
  }
}
