import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { spawn } from 'node:child_process';
import { freePort } from '../../dev/ports.js';
import { builtProgram } from '../../dev/root.js';

test('the same port is not returned twice, even before it is listened on', async () => {
  const ports: number[] = [];
  for (let n = 0; n < 900; n++) ports.push(await freePort());
  expect(new Set(ports).size).toBe(900);
});

test.runIf(process.platform === 'linux')(
  'two processes that start searching at the same port find different ports',
  async () => {
    const program = `
      Object.defineProperty(process, 'pid', { value: ${process.pid} });
      const { freePort } = await import(${JSON.stringify(builtProgram('dev', 'ports.js'))});
      console.log(await freePort());
      process.stdin.resume();`;
    const ports: number[] = [];
    for (let n = 0; n < 3; n++) {
      const child = spawn(process.execPath, ['--input-type=module', '--eval', program]);
      onTestFinished(() => void child.kill());
      const [printed] = (await once(child.stdout, 'data')) as [Buffer];
      ports.push(Number(printed.toString()));
    }
    expect(new Set(ports).size).toBe(3);
  },
);

test('ports that the kernel assigns by itself are not returned', async () => {
  const server = createServer();
  onTestFinished(() => void server.close());
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port: any } = server.address() as AddressInfo;
  expect(any).toBeGreaterThan(30_000);
  for (let n = 0; n < 20; n++) expect(await freePort()).toBeLessThan(20_000);
});
