import { expect, test } from 'vitest';
import { ReadingProcesses } from '../../src/pages/reading-processes.js';

const TELLING_READER = new URL('../support/telling-reader.mjs', import.meta.url);

test("runs a reading process without an environment and outside the project's folders", async () => {
  const processes = new ReadingProcesses(TELLING_READER);
  const page = { bytes: Buffer.from(''), contentType: 'text/html', url: 'http://page.test/' };
  const asker = { owner: 'somebody', signal: new AbortController().signal };
  try {
    expect(await processes.read(page, 'read', asker)).toEqual({ cwd: '/', env: {} });
  } finally {
    await processes.close();
  }
});
