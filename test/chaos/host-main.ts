// Runs a Docker host of the long chaos test: an engine and a worker in their own network.
import path from 'node:path';
import { keepRunning, type Running } from '../../dev/keep-running.js';
import { readRecord } from '../../dev/processes/process.js';
import { run } from '../../dev/processes/run.js';
import { stopping } from '../../dev/processes/stopping.js';
import { startService } from '../../dev/services.js';
import { hangGateway } from '../../bench/support/deeds.js';
import { OwnEngine } from '../../bench/support/own-engine.js';
import type { HostAnswer, HostOrder } from './far-host.js';
import { removeContainers } from './remains.js';
import { answersOn } from './site.js';

const [, , folder = ''] = process.argv;
const runDir = path.join(folder, 'run');
const engine = new OwnEngine(folder);
let worker: Pick<Running, 'stop'> | undefined;

process.on('message', (order: HostOrder) => void answer(order));
process.once('disconnect', () => void end());
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => undefined);

async function answer(order: HostOrder): Promise<void> {
  const send = (given: HostAnswer) => process.send?.(given);
  try {
    send({ id: order.id, value: await obey(order) });
  } catch (error) {
    send({ id: order.id, failed: error instanceof Error ? (error.stack ?? error.message) : '' });
  }
}

async function obey(order: HostOrder): Promise<unknown> {
  switch (order.what) {
    case 'join-network':
      await run('ip', ['link', 'set', 'lo', 'up'], { timeout: 10_000 });
      await run('ip', ['addr', 'add', order.address, 'dev', order.link], { timeout: 10_000 });
      await run('ip', ['link', 'set', order.link, 'up'], { timeout: 10_000 });
      return undefined;
    case 'start-engine':
      return engine.start();
    case 'kill-engine':
      return engine.kill();
    case 'start-worker':
      worker = await keepRunning('worker', () =>
        startService({ name: 'worker', env: { ...process.env, ...order.env }, runDir }),
      );
      return undefined;
    case 'worker-pid':
      return (await readRecord(runDir, 'worker'))?.pid;
    case 'probe':
      return answersOn(order.port);
    case 'hang-gateway':
      return hangGateway(engine.docker, order.agentId);
  }
}

async function end(): Promise<void> {
  await worker?.stop();
  await removeContainers(engine.docker).catch(() => undefined); // its engine may be dead
  await engine.stop();
  stopping.abort();
  if (process.connected) process.disconnect();
  process.exit();
}
