import { describe, expect, test } from 'vitest';
import { DockerFrames } from '../../../src/docker/containers/docker-frames.js';

const frame = (kind: number, text: string): Buffer => {
  const head = Buffer.alloc(8);
  head[0] = kind;
  head.writeUInt32BE(Buffer.byteLength(text), 4);
  return Buffer.concat([head, Buffer.from(text)]);
};

const SENT = Buffer.concat([frame(1, 'out\n'), frame(2, ''), frame(2, 'err\n'), frame(0, 'more')]);
const WHOLE = ['stdout out\n', 'stderr ', 'stderr err\n', 'stdout more'];

describe("Docker's frames of a container", () => {
  test.each([1, 2, 3, 7, 8, 9, 11, SENT.length])(
    'frames are read correctly in pieces of %i bytes',
    (size) => {
      expect(read(SENT, size)).toEqual(WHOLE);
    },
  );

  test("a part of a frame is passed on early, with the frame's length", () => {
    const begun = frame(2, 'a long line').subarray(0, 10);
    const [part] = new DockerFrames().read(begun);
    expect(part).toEqual({
      stream: 'stderr',
      bytes: Buffer.from('a '),
      frameBytes: 11,
      isLast: false,
    });
  });
});

/** Returns each frame as its stream and its text. */
function read(sent: Buffer, size: number): string[] {
  const frames = new DockerFrames();
  const whole: string[] = [];
  let text = '';
  for (let at = 0; at < sent.length; at += size) {
    for (const { bytes, isLast, stream } of frames.read(sent.subarray(at, at + size))) {
      text += bytes.toString();
      if (isLast) whole.push(`${stream} ${text}`);
      if (isLast) text = '';
    }
  }
  return whole;
}
