import { fork, type ChildProcess } from 'node:child_process';
import { fileURLToPath } from 'node:url';

/** Runs a program of this folder and waits for its only message. */
export async function forkUntilMessage<T>(
  name: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv = process.env,
): Promise<{ child: ChildProcess; message: T }> {
  const program = fileURLToPath(new URL(`${name}.js`, import.meta.url));
  const child = fork(program, args, { env, stdio: 'inherit' });
  const message = await new Promise<T>((resolve, reject) => {
    child.once('message', (sent) => resolve(sent as T)); // each program sends one kind of message
    child.once('error', reject);
    // Not `exit`, which may arrive before the message.
    child.once('disconnect', () => reject(new Error(`${name} ended without a message`)));
  });
  return { child, message };
}
