import { randomInt, randomUUID } from 'node:crypto';
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { spawn } from 'node:child_process';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** True if this process may create network namespaces. */
export const canMakeNetworks = process.platform === 'linux' && process.getuid?.() === 0;

/** A simulated remote machine on its own link that accepts connections on `port`. */
export interface FarMachine {
  readonly port: number;
  close(): Promise<void>;
}

/**
 * Creates a network namespace with these addresses and a listener on all of them, so that an address that
 * cannot be reached was blocked and not just missing.
 */
export async function farMachine(addresses: readonly string[]): Promise<FarMachine> {
  const id = randomUUID().slice(0, 6);
  const [namespace, here, there] = [`far-${id}`, `fh${id}`, `ft${id}`];
  const wire = `100.${64 + randomInt(64)}.${randomInt(256)}`;
  const ip = (...args: string[]) => run('ip', args);
  await ip('netns', 'add', namespace);
  try {
    await ip('link', 'add', here, 'type', 'veth', 'peer', 'name', there, 'netns', namespace);
    await ip('address', 'add', `${wire}.1/30`, 'dev', here);
    await ip('link', 'set', here, 'up');
    const inside = (...args: string[]) => ip('-n', namespace, ...args);
    await inside('link', 'set', 'lo', 'up');
    await inside('address', 'add', `${wire}.2/30`, 'dev', there);
    await inside('link', 'set', there, 'up');
    await inside('route', 'add', 'default', 'via', `${wire}.1`);
    for (const address of addresses) {
      await inside('address', 'add', `${address}/32`, 'dev', 'lo');
      await ip('route', 'add', `${address}/32`, 'via', `${wire}.2`);
    }
    const serve = `const s=require('net').createServer(c=>c.on('error',()=>{}).destroy());
      s.listen(0,'0.0.0.0',()=>console.log(s.address().port))`;
    const listener = spawn('ip', ['netns', 'exec', namespace, process.execPath, '-e', serve], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const [line] = (await once(listener.stdout, 'data')) as [Buffer];
    return {
      port: Number(line.toString()),
      async close() {
        listener.kill('SIGKILL');
        await ip('netns', 'delete', namespace); // also removes its end of the link, and the routes
      },
    };
  } catch (error) {
    await ip('netns', 'delete', namespace);
    throw error;
  }
}
