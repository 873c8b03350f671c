import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { within } from './within.js';

/** Milliseconds that a program may take for its message, beyond the time of its load. */
const MESSAGE_MS = 120_000;

/** Milliseconds that a killed program may take to end. */
const GONE_MS = 10_000;

/**
 * Runs a program of this folder and waits for its only message.
 *
 * @param seconds of the load that precedes the message.
 */
export async function forkUntilMessage<T>(
  name: string,
  args: readonly string[],
  { env = process.env, seconds = 0 }: { env?: NodeJS.ProcessEnv; seconds?: number } = {},
): Promise<{ child: ChildProcess; message: T }> {
  const program = fileURLToPath(new URL(`${name}.js`, import.meta.url));
  const child = fork(program, args, { env, stdio: 'inherit' });
  const arrived = new Promise<T>((resolve, reject) => {
    child.once('message', (sent) => resolve(sent as T)); // each program sends one kind of message
    child.once('error', reject);
    // Not `exit`, which may arrive before the message.
    child.once('disconnect', () => reject(new Error(`${name} ended without a message`)));
  });
  try {
    const ms = MESSAGE_MS + seconds * 1_000;
    return { child, message: await within(`the message of ${name}`, ms, arrived) };
  } catch (error) {
    child.kill('SIGKILL');
    throw error;
  }
}

/** Requests a child to end, and kills it if it still runs after `graceMs`. */
export async function endChild(name: string, child: ChildProcess, graceMs = 15_000): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  const timer = setTimeout(() => child.kill('SIGKILL'), graceMs);
  child.kill();
  try {
    await within(`the end of ${name}`, graceMs + GONE_MS, ended);
  } finally {
    clearTimeout(timer);
  }
}
