import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { Outbound } from '../../src/outbound/outbound.js';
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
  const again = () => new Workspace({ path: folder, views, remotes: new Outbound(), ...remotes });
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
    git: (...args) => plainGit(folder, ...args),
    close: () => rm(around, { recursive: true, force: true }),
  };
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
