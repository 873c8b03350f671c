import { expect, test } from 'vitest';
import { ServiceError } from '../../../src/lib/errors.js';
import { AgentFiles } from '../../../src/agents/hosts/agent-files.js';

const AGENT = { agentId: 'an-agent', userId: 'a-user', host: 'a-host' };
const READ = { path: 'a.txt', content: 'a', size: 1, modified: '2026-01-01T00:00:00.000Z' };

/** Returns the files of an agent whose host answers in these pieces. */
function files(pieces: Iterable<string>): AgentFiles {
  async function* browse() {
    for (const piece of pieces) yield await Promise.resolve(piece);
  }
  return new AgentFiles({ accessTo: () => Promise.resolve({ browse }) }, AGENT);
}

test('assembles an answer from any number of pieces', async () => {
  const pieces = [...JSON.stringify({ id: 1, value: READ })];
  expect(await files(pieces).read('a.txt')).toEqual(READ);
});

test("passes on the host's refusal with its details", async () => {
  const refused = {
    status: 409,
    message: 'not now',
    code: 'REPOSITORY_BUSY',
    facts: { lock: 'index.lock' },
  };
  const failure = await files([JSON.stringify({ id: 1, refused })])
    .gitSync()
    .catch((error: unknown) => error);
  expect(failure).toBeInstanceOf(ServiceError);
  expect(failure).toMatchObject(refused);
});

test.each([
  ['nothing', ''],
  ['no JSON', '{"id":1,"value":'],
  ['something else', '[]'],
  ['the answer to another question', JSON.stringify({ id: 1, value: { isGitRepo: false } })],
  ['a refusal that is none', JSON.stringify({ id: 1, refused: { status: 200, message: 'well' } })],
])('answers 502 when a host sends %s', async (_, answer) => {
  await expect(files([answer]).read('a.txt')).rejects.toMatchObject({ status: 502 });
});

test('disconnects from a host whose answer never ends', { tags: 'attack' }, async () => {
  let isLeft = false;
  function* endless() {
    const piece = ' '.repeat(8 * 1024 * 1024);
    try {
      for (;;) yield piece;
    } finally {
      isLeft = true;
    }
  }
  await expect(files(endless()).read('a.txt')).rejects.toMatchObject({ status: 502 });
  expect(isLeft).toBe(true);
});
