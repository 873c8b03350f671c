import { buffer } from 'node:stream/consumers';
import { Readable } from 'node:stream';
import { extract, pack } from 'tar-stream';
import { expect, test } from 'vitest';
import { isOfOneAgent } from '../../../src/docker/containers/openclaw-config.js';
import { filteredTar } from '../../../src/docker/containers/tar-filter.js';

async function archive(): Promise<Buffer> {
  const made = pack();
  made.entry({ name: 'state/', type: 'directory', mode: 0o700, uid: 1000, gid: 1000 });
  made.entry({ name: 'state/kept', mode: 0o640, uid: 1000, gid: 1001 }, 'x'.repeat(100_000));
  made.entry({ name: 'state/secret/one' }, 'secret');
  made.entry({ name: 'state/to-secret', type: 'link', linkname: 'state/secret/one' });
  made.entry({ name: 'state/to-kept', type: 'symlink', linkname: 'kept' });
  made.finalize();
  return buffer(made);
}

async function entriesOf(bytes: Buffer): Promise<unknown[]> {
  const found: unknown[] = [];
  const entries = extract();
  entries.end(bytes);
  for await (const entry of entries) {
    const { name, mode, uid, gid, type } = entry.header;
    found.push({ name, mode, uid, gid, type, length: (await buffer(entry)).length });
  }
  return found;
}

const isSecret = (name: string) => name.startsWith('state/secret/');

test('filtering an archive removes excluded entries and links to them, and keeps the rest unchanged', async () => {
  const whole = await archive();
  const filtered = await buffer(filteredTar(Readable.from([whole]), isSecret));
  const before = await entriesOf(whole);
  expect(before).toHaveLength(5);
  expect(await entriesOf(filtered)).toEqual([before[0], before[1], before[4]]);
  expect(filtered.includes('secret')).toBe(false);
});

test('a truncated archive is refused', async () => {
  const whole = await archive();
  const cut = filteredTar(Readable.from([whole.subarray(0, 50_000)]), isSecret);
  await expect(buffer(cut)).rejects.toThrow();
});

test('a read error of the source archive fails the filtered archive', async () => {
  const whole = await archive();
  async function* failing(): AsyncGenerator<Buffer> {
    yield await Promise.resolve(whole.subarray(0, 50_000));
    throw new Error('disk read failed');
  }
  const filtered = filteredTar(Readable.from(failing()), isSecret);
  await expect(buffer(filtered)).rejects.toThrow('disk read failed');
});

test.each([
  ['.openclaw/.env', true],
  ['.openclaw/credentials/', true],
  ['.openclaw/credentials/oauth.json', true],
  ['.openclaw/identity/device.json', true],
  ['.openclaw/agents/main/sessions/one.jsonl', true],
  ['.openclaw/agents/main/agent/auth-profiles.json', true],
  ['.openclaw/agents/main/agent/openclaw-agent.sqlite', true],
  ['.openclaw/agents/main/agent/openclaw-agent.sqlite-wal', true],
  ['.openclaw/state/openclaw.sqlite', true],
  ['.openclaw/tmp/openclaw-1000/gateway.state.lock', true],
  ['.openclaw/config-journal-fingerprint.key', true],
  ['.openclaw/agents/main/agent/models.json', false],
  ['.openclaw/workspace/state/notes.md', false],
  ['.openclaw/workspace/sessions/notes.md', false],
  ['.openclaw/openclaw.json', false],
  ['memory', false],
])('the state path %s belongs to a single agent: %s', (path, expected) => {
  expect(isOfOneAgent(path)).toBe(expected);
});
