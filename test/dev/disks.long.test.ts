import { chmod, cp, mkdir, symlink } from 'node:fs/promises';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test, type TestContext } from 'vitest';
import { freePort } from '../../dev/ports.js';
import { projectRoot } from '../../dev/root.js';
import { onReadOnlyDisk, onSmallDisk, type OnDisk } from './disks.js';
import { Place, type Launcher } from './launcher.js';

/** Files that a fresh clone lacks or a start does not read. */
const NOT_CLONED = ['.data', '.git', 'dist', 'dist-dev', 'node_modules'];

/** Progress lines: a step that begins, or its duration. */
const PROGRESS = / \.\.\.$| in \d+\.\d s\.?$/;

let place: Place;
let folder: string;
let nowhere: string;
beforeEach(async () => {
  place = await Place.make();
  folder = path.join(path.dirname(place.dataDir), 'disk');
  await mkdir(folder);
  nowhere = `127.0.0.1:${await freePort()}`;
});
afterEach(async () => {
  await chmod(folder, 0o755); // undoes a read-only disk made by permissions
  await place.close();
});

/** Skips a test that cannot run here; CI fails on skipped tests. */
function required(disk: OnDisk | undefined, { skip }: TestContext): OnDisk {
  if (disk === undefined) skip('Neither mounts nor permissions can make such a disk here.');
  return disk ?? [];
}

/** Returns the last line, the only one that is not progress. */
async function lastSentence(launcher: Launcher): Promise<string> {
  expect(await launcher.ended).toBe(1);
  const lines = launcher.output.trim().split('\n');
  expect(lines.filter((line) => !PROGRESS.test(line))).toHaveLength(1);
  return lines.at(-1) ?? '';
}

describe('a data folder on a limited disk', () => {
  test('names the data folder to make writable on a read-only disk', async (context) => {
    const disk = required(await onReadOnlyDisk(folder), context);
    for (const dataDir of [folder, path.join(folder, 'deep', 'down')]) {
      expect(await lastSentence(place.start({ DATA_DIR: dataDir }, disk))).toBe(
        `${dataDir} cannot be written by this user: ` +
          'make it writable, or set DATA_DIR to another folder.',
      );
    }
  });

  test('states the space that the data folder needs on a disk with little room', async (context) => {
    const disk = required(await onSmallDisk(folder), context);
    expect(await lastSentence(place.start({ DATA_DIR: folder }, disk))).toBe(
      `The disk that holds ${folder} has only 104 MB left: ` +
        'free 500 MB, or set DATA_DIR to another disk.',
    );
  });

  test("reports that the data folder's disk cannot take more files", async (context) => {
    const disk = required(await onSmallDisk(folder, 'size=1g,nr_inodes=40'), context);
    expect(await lastSentence(place.start({ DATA_DIR: folder }, disk))).toMatch(
      /has room for only \d+ more files: remove some, or set DATA_DIR to another disk\.$/,
    );
  });

  test("reports that the data folder's disk is full", async (context) => {
    const disk = required(await onSmallDisk(folder, 'nr_inodes=1'), context);
    expect(await lastSentence(place.start({ DATA_DIR: folder }, disk))).toBe(
      `The disk that holds ${folder} is full: free some space, or set DATA_DIR to another disk.`,
    );
  });
});

describe('a cache on a limited disk', () => {
  /** Temporal is downloaded to the cache because no path to it is set. */
  const fetching = () => ({
    CACHE_DIR: folder,
    TEMPORAL_CLI_PATH: '',
    PATH: '/usr/bin:/bin',
    DATABASE_URL: `postgres://nobody@${nowhere}/none`,
    DATABASE_OWNER_URL: `postgres://nobody@${nowhere}/none`,
  });

  test('names the cache folder to make writable on a read-only disk', async (context) => {
    const disk = required(await onReadOnlyDisk(folder), context);
    expect(await lastSentence(place.start(fetching(), disk))).toBe(
      `${folder} cannot be written by this user: ` +
        'make it writable, or set CACHE_DIR to another folder.',
    );
  });

  test('states the space that the cache needs on a disk with little room', async (context) => {
    const disk = required(await onSmallDisk(folder), context);
    expect(await lastSentence(place.start(fetching(), disk))).toBe(
      `The disk that holds ${folder} has only 104 MB left: ` +
        'free 300 MB, or set CACHE_DIR to another disk.',
    );
  });
});

describe('a clone on a limited disk', () => {
  beforeEach(async () => {
    const left = NOT_CLONED.map((name) => path.join(projectRoot, name));
    await cp(projectRoot, folder, { recursive: true, filter: (file) => !left.includes(file) });
  });
  const installed = () =>
    symlink(path.join(projectRoot, 'node_modules'), path.join(folder, 'node_modules'));
  /** Adds the build and a repository at its commit: a rebuild would find nothing to change. */
  const built = async () => {
    const programs = path.join(folder, 'dist-dev');
    await cp(path.join(projectRoot, 'dist-dev'), programs, { recursive: true });
    const repository = path.join(folder, '.git');
    for (const name of ['objects', 'refs'])
      await mkdir(path.join(repository, name), { recursive: true });
    await cp(path.join(programs, 'commit.txt'), path.join(repository, 'HEAD'));
  };

  const unwritable = () =>
    `${folder}/ cannot be written: make it writable for this user, or clone elsewhere.`;
  const little = (megabytes: number) =>
    new RegExp(`has only \\d+ MB left: free ${megabytes} MB and retry\\.$`);

  test('does not install a clone on a read-only disk, and reports the reason', async (context) => {
    const disk = required(await onReadOnlyDisk(folder), context);
    expect(await lastSentence(place.start({}, disk, folder))).toBe(unwritable());
  });

  test('does not build a clone on a read-only disk, and reports the reason', async (context) => {
    await installed();
    const disk = required(await onReadOnlyDisk(folder), context);
    expect(await lastSentence(place.start({}, disk, folder))).toBe(unwritable());
  });

  test('neither installs nor builds a clone on a disk with little room, and reports the reason', async (context) => {
    const disk = required(await onSmallDisk(folder), context);
    expect(await lastSentence(place.start({}, disk, folder))).toMatch(little(1000));
    await installed();
    const tiny = required(await onSmallDisk(folder, 'size=20m'), context);
    expect(await lastSentence(place.start({}, tiny, folder))).toMatch(little(50));
  });

  test('needs only a data folder if a clone on a read-only disk is installed and built', async (context) => {
    await installed();
    await built();
    const disk = required(await onReadOnlyDisk(folder), context);
    expect(await lastSentence(place.start({ DATA_DIR: '' }, disk, folder))).toBe(
      `${folder}/.data cannot be written by this user: ` +
        'make it writable, or set DATA_DIR to another folder.',
    );
  });
});
