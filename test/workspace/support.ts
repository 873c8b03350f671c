import { execFile } from 'node:child_process';
import { constants } from 'node:fs';
import { mkdir, mkdtemp, open, readdir, readFile, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { OutboundClient } from '../../src/platform/outbound/outbound.js';
import { Workspace } from '../../src/workspace/workspace.js';

const run = promisify(execFile);

/** A folder with a workspace and room beside it for files that must stay out of reach. */
export interface TestWorkspace {
  readonly workspace: Workspace;
  /** The folder around the workspace. */
  readonly around: string;
  readonly path: string;
  readonly views: string;
  /** Returns the workspace as a newly started process would open it. */
  again(): Workspace;
  put(file: string, content: string | Uint8Array): Promise<void>;
  /** Creates a named pipe without a writer: a reader blocks until the workspace is closed. */
  pipe(file: string): Promise<void>;
  /** Runs plain git in the workspace, as its owner would. */
  git(...args: string[]): Promise<string>;
  close(): Promise<void>;
}

type Remotes = Partial<Pick<ConstructorParameters<typeof Workspace>[0], 'remotes' | 'pushMs'>>;

/**
 * Creates a workspace in a temporary folder.
 *
 * @param remotes the outbound connections; the default settings when omitted.
 */
export async function testWorkspace(remotes: Remotes = {}): Promise<TestWorkspace> {
  const around = await realpath(await mkdtemp(path.join(tmpdir(), 'aps-workspace-')));
  const folder = path.join(around, 'work');
  const views = path.join(around, 'views');
  await mkdir(folder);
  const pipes: string[] = [];
  const again = () =>
    new Workspace({ path: folder, views, remotes: new OutboundClient(), ...remotes });
  return {
    workspace: again(),
    around,
    path: folder,
    views,
    again,
    async put(file, content) {
      const full = path.join(folder, file);
      await mkdir(path.dirname(full), { recursive: true });
      await writeFile(full, content);
    },
    async pipe(file) {
      const full = path.join(folder, file);
      await run('mkfifo', [full]);
      pipes.push(full);
    },
    git: (...args) => plainGit(folder, ...args),
    async close() {
      await Promise.all(pipes.map(releasePipe));
      await rm(around, { recursive: true, force: true });
    },
  };
}

/** Unblocks the readers of a pipe: threads of this process, or git. */
export async function releasePipe(file: string): Promise<void> {
  const end = await open(file, constants.O_RDWR | constants.O_NONBLOCK).catch(() => undefined);
  await end?.close(); // undefined if the pipe was removed
}

/** Returns the arguments of all processes that have a folder in their environment. */
export async function processesIn(folder: string): Promise<string[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  const read = (pid: string, file: string) =>
    readFile(`/proc/${pid}/${file}`, 'latin1').catch(() => ''); // the process has ended
  const found = pids.map(async (pid) =>
    (await read(pid, 'environ')).includes(folder) ? [await read(pid, 'cmdline')] : [],
  );
  return (await Promise.all(found)).flat().map((line) => line.replaceAll('\0', ' ').trim());
}

/** Runs git with no configuration but the repository's. */
export async function plainGit(cwd: string, ...args: string[]): Promise<string> {
  const identity = ['-c', 'user.name=Ada', '-c', 'user.email=ada@example.test'];
  const { stdout } = await run('git', [...identity, '-c', 'init.defaultBranch=main', ...args], {
    cwd,
    env: { PATH: process.env.PATH, HOME: '/nonexistent', GIT_CONFIG_NOSYSTEM: '1', LC_ALL: 'C' },
    maxBuffer: 64 * 1024 * 1024,
  });
  return stdout;
}
