import { Connection } from '@temporalio/client';
import { afterEach, expect, test, vi } from 'vitest';
import { withDeadline } from '../../temporal/with-deadline.js';

const connection = Connection.lazy({ address: '127.0.0.1:1' });
const storage = connection.callContextStorage;
const disable = vi.spyOn(storage, 'disable');

afterEach(() => {
  disable.mockClear();
});

test('sets a deadline for calls', async () => {
  const before = Date.now();
  const deadline = await withDeadline(connection, 5_000, () =>
    Promise.resolve(Number(storage.getStore()?.deadline)),
  );
  expect(deadline - before).toBeGreaterThanOrEqual(5_000);
  expect(deadline - Date.now()).toBeLessThanOrEqual(5_000);
});

test('disables the storage of deadlines after the last call in flight, failed ones included', async () => {
  const ends: ((error?: Error) => void)[] = [];
  const call = () =>
    withDeadline(
      connection,
      5_000,
      () =>
        new Promise<void>((resolve, reject) => {
          ends.push((error) => (error === undefined ? resolve() : reject(error)));
        }),
    );
  const [first, second] = [call(), call()];
  ends[0]?.();
  await first;
  expect(disable).not.toHaveBeenCalled();
  ends[1]?.(new Error('refused'));
  await expect(second).rejects.toThrow('refused');
  expect(disable).toHaveBeenCalledOnce();
});
