import { expect, test } from 'vitest';
import { freePort } from '../../dev/ports.js';
import { lazyConnection } from '../../temporal/lazy-connection.js';
import { until } from '../support/until.js';

test('a connection closes while a call waits for its retry, which does not follow', async () => {
  const failures: unknown[] = [];
  const fail = (error: unknown) => failures.push(error);
  process.on('uncaughtException', fail);
  try {
    const address = `127.0.0.1:${await freePort()}`;
    const { close, connection } = lazyConnection({ address, connectTimeout: 200 });
    let ended = false;
    const call = connection.workflowService.getSystemInfo({}).catch((error: unknown) => {
      ended = true;
      return error;
    });
    await until(() => Promise.resolve(ended), 15_000).catch(() => undefined);
    await close();
    expect(await call).toBeInstanceOf(Error);
    expect(failures).toEqual([]);
  } finally {
    process.off('uncaughtException', fail);
  }
});
