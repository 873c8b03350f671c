import { afterEach, expect, test, vi } from 'vitest';
import { Outbound } from '../../src/outbound/outbound.js';
import { Pages, QueueFullError } from '../../src/pages/pages.js';
import { ReadingProcesses } from '../../src/pages/reading-processes.js';

afterEach(() => void vi.restoreAllMocks());

const TELLING_READER = new URL('../support/telling-reader.mjs', import.meta.url);

/** What each of so many processes was started with, of those that read as many pages at the same time. */
async function startedFor(pages: number): Promise<unknown[]> {
  const processes = new ReadingProcesses(TELLING_READER);
  const page = { bytes: Buffer.from(''), contentType: 'text/html', url: 'http://page.test/' };
  const { signal } = new AbortController();
  try {
    return await Promise.all(
      Array.from({ length: pages }, (_, index) =>
        processes.read(page, 'read', { owner: `${index}`, signal }),
      ),
    );
  } finally {
    await processes.close();
  }
}

test('a process that reads pages has no environment, no folder of ours and 512 MB', async () => {
  process.env.READER_TEST_SECRET = 'secret';
  const [told] = await startedFor(1);
  delete process.env.READER_TEST_SECRET;
  expect(told).toMatchObject({ cwd: '/', execArgv: ['--max-old-space-size=512'] });
  expect(Object.keys(Object(told).env)).toEqual([]);
});

test('two processes read all pages', async () => {
  const told = await startedFor(6);
  expect(new Set(told.map((each) => Object(each).pid)).size).toBe(2);
});

test('32 pages are fetched at a time, for 10 s at most, while 200 wait; the next is refused', async () => {
  const timeout = vi.spyOn(AbortSignal, 'timeout');
  const outbound = new Outbound();
  const get = vi
    .spyOn(outbound, 'get')
    .mockImplementation(
      (_address, { signal }) =>
        new Promise((_resolve, reject) =>
          signal.addEventListener('abort', () => reject(new Error('left'))),
        ),
    );
  const pages = new Pages({ outbound, program: TELLING_READER });
  const left = new AbortController();
  const ask = (number: number) =>
    pages.read('read', `http://site${number}.test/`, {
      client: `10.0.${number >> 8}.${number & 255}`,
      signal: left.signal,
    });
  const asked = Array.from({ length: 232 }, (_, index) => ask(index));
  const refuse = vi.fn();
  const ended = Promise.all(asked.map((each) => each.catch(refuse)));
  try {
    await expect(ask(232)).rejects.toBeInstanceOf(QueueFullError);
    await vi.waitFor(() => expect(get).toHaveBeenCalledTimes(32));
    await new Promise(setImmediate);
    expect(refuse).not.toHaveBeenCalled();
    expect(get).toHaveBeenCalledTimes(32);
    expect(new Set(timeout.mock.calls.flat())).toEqual(new Set([10_000]));
  } finally {
    left.abort(new Error('left'));
    await ended;
    await pages.close();
  }
});
