import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { ServiceError, UnavailableError } from '../../lib/errors.js';

/** Milliseconds for all git work of one request. */
export const GIT_MS = 30_000;

/** Maximum bytes of git's output. */
const MAX_OUTPUT = 64 * 1024 * 1024;

const MAX_SAID = 4_096;

/** Search path for git; no other variable of the environment is passed to it. */
const PATH = '/usr/local/bin:/usr/bin:/bin:/opt/homebrew/bin';

/** 500: git failed. Its error output is not sent to the client. */
export class GitFailedError extends ServiceError {
  override readonly name = 'GitFailedError';

  constructor(
    message: string,
    /** End of git's error output, for operators: it may contain names from the repository. */
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
  /** Bytes after which the output is cut and git is ended. If missing, too much output is a failure. */
  readonly cutAt?: number | undefined;
  /** Receives the output as it arrives; none of it is then kept. */
  readonly reads?: ((piece: Buffer) => void) | undefined;
  readonly signal: AbortSignal;
}

export interface GitAnswer {
  /** Exit code; null if git was killed. */
  readonly code: number | null;
  readonly output: Buffer;
  readonly isCut: boolean;
  readonly stderr: string;
}

/**
 * Runs git in a process group of its own, which is killed when the signal aborts or the output is too long.
 * @throws UnavailableError if git is missing, the signal's reason
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
      // The process group has ended already.
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
  child.stdin.on('error', () => undefined); // git ended before it had read all input
  child.stdin.end(input);
  try {
    const [code] = (await once(child, 'close')) as [number | null];
    signal.throwIfAborted();
    const isCut = length > cutAt;
    if (isCut && call.cutAt === undefined) throw new GitFailedError('git printed too much');
    return { code, output: Buffer.concat(pieces).subarray(0, cutAt), isCut, stderr: said };
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') {
      throw new UnavailableError('git is missing on this host: install it', { cause: error });
    }
    throw error;
  } finally {
    signal.removeEventListener('abort', end);
  }
}
