import { execFile } from 'node:child_process';
import { constants } from 'node:fs';
import { mkdir, mkdtemp, open, readdir, readFile, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { OutboundClient } from '../../src/platform/outbound/outbound.js';
import { Workspace } from '../../src/workspace/workspace.js';

const run = promisify(execFile);

/** A folder with a workspace in it, and room beside that for what is not to be reached. */
export interface TestWorkspace {
  readonly workspace: Workspace;
  /** The folder around it. */
  readonly around: string;
  readonly path: string;
  readonly views: string;
  /** The same workspace as a process that starts anew has it. */
  again(): Workspace;
  put(file: string, content: string | Uint8Array): Promise<void>;
  /** A named pipe, which nobody writes to: who waits for that does so until the workspace is closed. */
  pipe(file: string): Promise<void>;
  /** Plain git, as its owner uses it there. */
  git(...args: string[]): Promise<string>;
  close(): Promise<void>;
}

type Remotes = Partial<Pick<ConstructorParameters<typeof Workspace>[0], 'remotes' | 'pushMs'>>;

/** @param remotes the way to them; as it is where nothing is set when left out. */
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

/** Lets go who waits for somebody at its other end: threads of this process, or git. */
export async function releasePipe(file: string): Promise<void> {
  const end = await open(file, constants.O_RDWR | constants.O_NONBLOCK).catch(() => undefined);
  await end?.close(); // undefined once somebody has removed it
}

/** The arguments of the processes that were started with a folder in their environment. */
export async function processesIn(folder: string): Promise<string[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  const read = (pid: string, file: string) =>
    readFile(`/proc/${pid}/${file}`, 'latin1').catch(() => ''); // it has ended
  const found = pids.map(async (pid) =>
    (await read(pid, 'environ')).includes(folder) ? [await read(pid, 'cmdline')] : [],
  );
  return (await Promise.all(found)).flat().map((line) => line.replaceAll('\0', ' ').trim());
}

/** Git with nobody's configuration but the repository's. */
export async function plainGit(cwd: string, ...args: string[]): Promise<string> {
  const identity = ['-c', 'user.name=Ada', '-c', 'user.email=ada@example.test'];
  const { stdout } = await run('git', [...identity, '-c', 'init.defaultBranch=main', ...args], {
    cwd,
    env: { PATH: process.env.PATH, HOME: '/nonexistent', GIT_CONFIG_NOSYSTEM: '1', LC_ALL: 'C' },
    maxBuffer: 64 * 1024 * 1024,
  });
  return stdout;
}
