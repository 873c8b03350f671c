import { once } from 'node:events';
import { createInterface } from 'node:readline';
import type { Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { HelperCall } from '../../src/workspace/helper-protocol.js';
import { until } from '../support/until.js';
import { startHelper, type StartedHelper } from './helper-process.js';
import { processesIn, testWorkspace, type TestWorkspace } from './support.js';

let at: TestWorkspace;
let helper: StartedHelper | undefined;
beforeEach(async () => {
  at = await testWorkspace();
  await at.git('init', '-q');
  await at.put('file.txt', 'there');
  // Git blocks until a writer opens the pipe.
  await at.pipe('.gitignore');
});
afterEach(async () => {
  helper?.process.kill('SIGKILL');
  await at.close();
});

/** Returns git's processes; the helper itself does not have the folder in its environment. */
const atWork = () => processesIn(at.views);

const ask = (line: Socket, id: number, call: HelperCall) =>
  void line.write(`${JSON.stringify({ id, call })}\n`);

describe('git started by a helper', { timeout: 60_000 }, () => {
  test.each<[string, (line: Socket) => unknown]>([
    ['when nobody waits for its answer any more', (line) => line.write('{"id":1,"left":true}\n')],
    ['with the connection', (line) => line.destroy()],
  ])('git of a helper is ended %s; other requests are answered', async (_, leave) => {
    helper = await startHelper(at);
    const { connected, line } = helper;
    const other = await connected();
    const answers = createInterface({ input: other });
    ask(line, 1, { what: 'status' });
    await until(
      async () => (await atWork()).some((each) => each.startsWith('git status ')),
      20_000,
    );
    leave(line);
    await until(async () => (await atWork()).length === 0, 20_000);
    const answered = once(answers, 'line');
    ask(other, 1, { what: 'read', path: 'file.txt' });
    const [answer] = await answered;
    expect(JSON.parse(answer)).toMatchObject({ id: 1, value: { content: 'there' } });
    other.destroy();
  });
});
