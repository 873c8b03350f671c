import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { ServiceError, UnavailableError } from '../../lib/errors.js';

/** Milliseconds for what one request asks of git. */
export const GIT_MS = 30_000;

/** Bytes that git may answer. */
const MAX_OUTPUT = 64 * 1024 * 1024;

const MAX_SAID = 4_096;

/** Where git is looked for: nothing else of the environment reaches it. */
const PATH = '/usr/local/bin:/usr/bin:/bin:/opt/homebrew/bin';

/** 500: git could not do it. What it said about that stays here. */
export class GitFailedError extends ServiceError {
  constructor(
    message: string,
    /** The end of what git said, for who mends it: it may name what is in the repository. */
    readonly said = '',
  ) {
    super(500, message);
  }
}

export interface GitCall {
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly input?: Uint8Array | undefined;
  /** What comes after so many bytes is left out, and git ended. Without it, that is a failure. */
  readonly cutAt?: number | undefined;
  /** Takes what git says as it comes; then none of it is kept. */
  readonly reads?: ((piece: Buffer) => void) | undefined;
  readonly signal: AbortSignal;
}

export interface GitAnswer {
  /** Null for one that was ended. */
  readonly code: number | null;
  readonly output: Buffer;
  readonly isCut: boolean;
  readonly said: string;
}

/**
 * Runs git in a process group of its own, which is killed when the signal aborts, and when it says too
 * much.
 *
 * @throws UnavailableError where there is no git, the signal's reason
 */
export async function runGit(call: GitCall): Promise<GitAnswer> {
  const { args, cutAt = MAX_OUTPUT, cwd, env, input, reads, signal } = call;
  signal.throwIfAborted();
  const child = spawn('git', [...args], {
    cwd,
    env: { PATH, LC_ALL: 'C', ...env },
    detached: true,
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  const end = () => {
    try {
      if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
    } catch {
      // It has ended.
    }
  };
  signal.addEventListener('abort', end);
  const pieces: Buffer[] = [];
  let length = 0;
  let said = '';
  child.stdout.on('data', (piece: Buffer) => {
    if (length > cutAt) return;
    length += piece.length;
    if (reads) reads(piece);
    else pieces.push(piece);
    if (length > cutAt) end();
  });
  child.stderr.on('data', (piece: Buffer) => {
    said = (said + piece.toString()).slice(-MAX_SAID);
  });
  child.stdin.on('error', () => undefined); // it ended before it had read all
  child.stdin.end(input);
  try {
    const [code] = (await once(child, 'close')) as [number | null];
    signal.throwIfAborted();
    const isCut = length > cutAt;
    if (isCut && call.cutAt === undefined) throw new GitFailedError('git says too much');
    return { code, output: Buffer.concat(pieces).subarray(0, cutAt), isCut, said };
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') {
      throw new UnavailableError('There is no git on this host', { cause: error });
    }
    throw error;
  } finally {
    signal.removeEventListener('abort', end);
  }
}
