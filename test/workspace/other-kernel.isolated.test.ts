import { constants } from 'node:fs';
import type FileSystem from 'node:fs/promises';
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { Folder } from '../../src/workspace/files/folder.js';

/** Imitates gVisor's kernel, which may run agents' helpers. */
vi.mock('node:fs/promises', async (original) => {
  const real = await original<typeof FileSystem>();
  const open: typeof real.open = (file, flags, mode) => {
    const isFolder = typeof flags === 'number' && (flags & constants.O_DIRECTORY) !== 0;
    return real.open(file, isFolder ? flags & ~constants.O_NOFOLLOW : flags, mode);
  };
  return { ...real, open };
});

let place: string;
beforeAll(async () => {
  place = await mkdtemp(path.join(tmpdir(), 'aps-folder-'));
  await mkdir(path.join(place, 'workspace', 'inner'), { recursive: true });
  await writeFile(path.join(place, 'secret'), '');
  await writeFile(path.join(place, 'workspace', 'closed'), '', { mode: 0 });
  await symlink('..', path.join(place, 'workspace', 'up'));
});
afterAll(() => rm(place, { recursive: true }));

test('a link to a folder is not followed even if the kernel would follow it', async () => {
  const root = await Folder.root(path.join(place, 'workspace'));
  try {
    await expect(root.folder('up')).rejects.toThrow('path leads through a link');
    await expect(root.folder('closed')).rejects.toThrow(
      'path leads through something that is not a folder',
    );
    await expect(root.folder('nowhere')).rejects.toThrow('File not found');
    await (await root.folder('inner')).close();
  } finally {
    await root.close();
  }
});
