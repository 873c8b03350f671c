import { expect, test } from 'vitest';
import { ReadingProcesses } from '../../src/pages/reading-processes.js';

const REPORTING_READER = new URL('../support/reporting-reader.mjs', import.meta.url);

test("runs a reading process without an environment and outside the project's folders", async () => {
  const processes = new ReadingProcesses(REPORTING_READER);
  const page = { bytes: Buffer.from(''), contentType: 'text/html', url: 'http://page.test/' };
  const caller = { owner: 'somebody', signal: new AbortController().signal };
  try {
    expect(await processes.read(page, 'read', caller)).toEqual({ cwd: '/', env: {} });
  } finally {
    await processes.close();
  }
});
