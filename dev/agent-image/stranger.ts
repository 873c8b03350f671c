import { execFile, type ExecFileOptions } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { chmod, chown, copyFile, cp, mkdir, mkdtemp, readdir, rm, stat } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { minimalEnvironment } from '../processes/minimal-environment.js';

const execute = promisify(execFile);

/** First of the user ids that systemd uses for transient users: every user namespace includes them. */
const FIRST_UID = 61_184;
const LAST_UID = 65_519;

const SHORT_MS = 30_000;

/** Root's own folders are closed to other users; this one is on a disk, while `/tmp` may be in memory. */
const OPEN_TO_ALL = '/var/tmp';

const isRoot = (): boolean => process.getuid?.() === 0;

/** Returns the folder that holds the folders of strangers; `own` is the caller's own place. */
export const placeOfStrangers = (own: string): string =>
  isRoot() ? (process.env.TMPDIR ?? OPEN_TO_ALL) : own;

/**
 * Runs programs that were downloaded, in a folder made for them. Under root they run as a user without a
 * name, who owns nothing else and whose processes all end with `end`; otherwise as the caller.
 */
export class Stranger {
  /** The folder that the programs may write to; call `end` before reading their files. */
  readonly folder: string;
  readonly #place: string;
  readonly #uid: number | undefined;
  #node = process.execPath;

  private constructor(place: string, uid: number | undefined) {
    this.#place = place;
    this.#uid = uid;
    this.folder = path.join(place, 'work');
  }

  /** Creates a stranger; call `remove` at its end. */
  static async make(own: string): Promise<Stranger> {
    const place = await mkdtemp(path.join(placeOfStrangers(own), 'aps-image-'));
    await chmod(place, 0o711);
    const uid = isRoot() ? await freeUid() : undefined;
    const stranger = new Stranger(place, uid);
    await mkdir(stranger.folder, { mode: 0o700 });
    await stranger.own(stranger.folder);
    await stranger.#bring();
    return stranger;
  }

  /** Transfers a file or folder to the stranger; allowed only before its first program runs. */
  async own(file: string): Promise<void> {
    if (this.#uid !== undefined) await chown(file, this.#uid, this.#uid);
  }

  /** Runs one of our scripts with this process's Node. */
  runNode(args: readonly string[], options: ExecFileOptions & { timeout: number }) {
    return this.run(this.#node, args, options);
  }

  async run(
    command: string,
    args: readonly string[],
    { env, ...options }: ExecFileOptions & { timeout: number },
  ): Promise<string> {
    const home = this.#uid === undefined ? {} : { HOME: this.folder, TMPDIR: this.folder };
    const { stdout } = await execute(command, args, {
      cwd: this.folder,
      maxBuffer: 64 * 1024 * 1024,
      ...options,
      env: { ...minimalEnvironment(), ...home, ...env },
      encoding: 'utf8',
      ...(this.#uid !== undefined && { uid: this.#uid, gid: this.#uid }),
    });
    return stdout;
  }

  /** Returns npm's program in a readable place: a copy if its folder is closed to other users. */
  async reachable(npm: string): Promise<string> {
    if (await this.#canRun([npm, '--version'])) return npm;
    const own = path.join(this.#place, 'npm');
    const folder = path.dirname(path.dirname(npm));
    await cp(folder, own, { recursive: true, verbatimSymlinks: true });
    return path.join(own, path.relative(folder, npm));
  }

  /** Ends all programs that the stranger still runs: afterwards nothing changes in its folder. */
  async end(): Promise<void> {
    if (this.#uid === undefined) return;
    await this.runNode(['-e', "process.kill(-1, 'SIGKILL')"], {
      cwd: '/',
      timeout: SHORT_MS,
    }).catch((error: unknown) => {
      // No process was left to end.
      if (!(error as { stderr?: string }).stderr?.includes('ESRCH')) throw error;
    });
  }

  async remove(): Promise<void> {
    await rm(this.#place, { recursive: true, force: true });
  }

  async #bring(): Promise<void> {
    if (await this.#canRun(['--version'])) return;
    this.#node = path.join(this.#place, 'node');
    await copyFile(process.execPath, this.#node);
    await chmod(this.#node, 0o755);
  }

  async #canRun(args: readonly string[]): Promise<boolean> {
    try {
      await this.runNode(args, { cwd: '/', timeout: SHORT_MS });
      return true;
    } catch {
      return false; // Not accessible, for any reason.
    }
  }
}

/** Returns a user id under which no process runs. */
async function freeUid(): Promise<number> {
  const processes = (await readdir('/proc')).filter((entry) => /^\d+$/.test(entry));
  const owners = await Promise.all(
    processes.map((pid) =>
      stat(`/proc/${pid}`).then(
        ({ uid }) => uid,
        () => 0, // The process has ended.
      ),
    ),
  );
  for (;;) {
    const uid = randomInt(FIRST_UID, LAST_UID + 1);
    if (!owners.includes(uid)) return uid;
  }
}
