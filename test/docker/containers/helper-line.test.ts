import { duplexPair } from 'node:stream';
import { describe, expect, test } from 'vitest';
import { HelperLine } from '../../../src/docker/containers/helper-line.js';
import { ServiceError } from '../../../src/lib/errors.js';
import { HELPER_IDLE_MS } from '../../../src/workspace/helper-protocol.js';
import { until } from '../../support/until.js';

const READ = { what: 'read', path: 'a' } as const;
const NEVER = new AbortController().signal;

function newLine(times: { answerMs?: number; silentMs?: number } = { answerMs: 50 }) {
  const [ours, theirs] = duplexPair();
  theirs.resume();
  return { line: new HelperLine('container', ours, 60_000, times), theirs };
}

/** Frames text as Docker does for stdout. */
function framed(text: string): Buffer {
  const head = Buffer.from([1, 0, 0, 0, 0, 0, 0, 0]);
  head.writeUInt32BE(Buffer.byteLength(text), 4);
  return Buffer.concat([head, Buffer.from(text)]);
}

describe('line to a helper', () => {
  test('a line is not used again if no answer arrives in time', async () => {
    const { line } = newLine();
    await expect(line.send(READ, NEVER)).rejects.toThrow(ServiceError);
    expect(line.isOpen).toBe(false);
  });

  test('a line stays open for other requests once a byte has arrived', async () => {
    const { line, theirs } = newLine();
    const asked = line.send(READ, NEVER);
    theirs.write(framed('{"id":2'));
    await expect(asked).rejects.toThrow(ServiceError);
    expect([line.isOpen, line.hasAnswered]).toEqual([true, false]);
    const again = line.send(READ, NEVER);
    theirs.write(framed(',"value":1}\n'));
    expect(await again).toBe('{"id":2,"value":1}');
    expect(line.hasAnswered).toBe(true);
  });

  test('a line notifies the helper of a cancelled request', async () => {
    const { line, theirs } = newLine({});
    let said = '';
    theirs.on('data', (chunk: Buffer) => (said += chunk.toString()));
    const leaving = new AbortController();
    const left = line.send(READ, leaving.signal);
    leaving.abort(new Error('left'));
    await expect(left).rejects.toThrow('left');
    await until(() => said.endsWith('\n{"id":1,"left":true}\n'), 20_000);
    line.end();
  });

  test('a line is not used again after unanswered requests that were all cancelled', async () => {
    const { line, theirs } = newLine({ silentMs: 50 });
    const leaving = new AbortController();
    const asked = line.send(READ, leaving.signal);
    leaving.abort(new Error('left'));
    await expect(asked).rejects.toThrow('left');
    await until(() => Promise.resolve(!line.isOpen));
    // The helper was slow but is alive.
    theirs.write(framed('{"id":1,"value":1}\n'));
    await until(() => Promise.resolve(line.isOpen));
  });
});

test('a helper waits a minute for the next request', () => {
  expect(HELPER_IDLE_MS).toBe(60_000);
});
