import { randomBytes } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { ringOf } from '../../../src/platform/secrets/key-ring.js';
import { SecretBox, SecretUnreadableError } from '../../../src/platform/secrets/secret-box.js';

const box = new SecretBox(ringOf(randomBytes(32)));

describe('a sealed secret', { tags: 'attack' }, () => {
  test.each(['', 'a token', 'ünïcödé 🔑', 'x'.repeat(100_000)])('opens again (%#)', (secret) => {
    expect(box.open(box.seal(secret, 'agent:1'), 'agent:1')).toBe(secret);
  });

  test('is sealed differently every time', () => {
    expect(box.seal('a token', 'agent:1')).not.toBe(box.seal('a token', 'agent:1'));
  });

  test('does not show the secret', () => {
    const sealed = box.seal('a token', 'agent:1');
    expect(sealed).not.toContain('a token');
    expect(Buffer.from(sealed.slice(5), 'base64url').includes('a token')).toBe(false);
  });

  test('does not open in another context', () => {
    const sealed = box.seal('a token', 'agent:1');
    expect(() => box.open(sealed, 'agent:2')).toThrow(SecretUnreadableError);
  });

  test('does not open with another key', () => {
    const sealed = box.seal('a token', 'agent:1');
    const other = new SecretBox(ringOf(randomBytes(32)));
    expect(() => other.open(sealed, 'agent:1')).toThrow(SecretUnreadableError);
  });

  test('does not open when any byte of it was changed', () => {
    const bytes = Buffer.from(box.seal('a token', 'agent:1').slice(5), 'base64url');
    for (let index = 0; index < bytes.length; index += 1) {
      const changed = Buffer.from(bytes);
      changed.writeUInt8(changed.readUInt8(index) ^ 1, index);
      const sealed = `v1.1.${changed.toString('base64url')}`;
      expect(() => box.open(sealed, 'agent:1')).toThrow(SecretUnreadableError);
    }
  });

  test('does not open when it was cut short, lengthened, or is something else', () => {
    const sealed = box.seal('a token', 'agent:1');
    for (const wrong of [
      '',
      'v1.',
      'v1.1.',
      sealed.replace('v1.1', 'v1.2'),
      'a token',
      sealed.slice(0, -4),
      `${sealed}AAAA`,
    ]) {
      expect(() => box.open(wrong, 'agent:1')).toThrow(SecretUnreadableError);
    }
  });
});

test('a key that is not 32 bytes is refused', () => {
  expect(() => new SecretBox(ringOf(randomBytes(16)))).toThrow(RangeError);
});

test('a digest tells the same text in the same context, under the same key alone', () => {
  const digest = box.digest('1234', 'pin');
  expect(digest).toMatch(/^[0-9a-f]{64}$/);
  expect(box.digest('1234', 'pin')).toBe(digest);
  expect(box.digest('1235', 'pin')).not.toBe(digest);
  expect(box.digest('1234', 'other')).not.toBe(digest);
  expect(new SecretBox(ringOf(randomBytes(32))).digest('1234', 'pin')).not.toBe(digest);
});

describe('a ring of keys', () => {
  const [old, present] = [
    { id: 'old', key: randomBytes(32) },
    { id: 'new', key: randomBytes(32) },
  ];
  const before = new SecretBox([old]);
  const during = new SecretBox([present, old]);
  const after = new SecretBox([present]);

  test('seals with its first and opens with all; what is sealed names its key', () => {
    const [sealed, resealed] = [before.seal('a token', 'a'), during.seal('a token', 'a')];
    expect(sealed).toMatch(/^v1\.old\./);
    expect(resealed.startsWith(after.prefix)).toBe(true);
    expect(during.open(sealed, 'a')).toBe('a token');
    expect(after.open(resealed, 'a')).toBe('a token');
    expect(() => after.open(sealed, 'a')).toThrow(SecretUnreadableError);
  });

  test('has what it sealed before under its first key, for the same context alone', () => {
    const rewrapped = during.rewrap(before.seal('a token', 'a'), 'a');
    expect(after.open(rewrapped, 'a')).toBe('a token');
    expect(() => after.open(rewrapped, 'b')).toThrow(SecretUnreadableError);
    expect(() => during.rewrap(before.seal('a token', 'a'), 'b')).toThrow(SecretUnreadableError);
  });

  test('knows what was digested under each of its keys', () => {
    expect(during.digests('1', 'a')).toEqual([after.digest('1', 'a'), before.digest('1', 'a')]);
  });

  test('opens what was sealed before keys had names with the one that is named 1', () => {
    const first = { id: '1', key: old.key };
    const nameless = new SecretBox([first]).seal('a token', 'a').replace('v1.1.', 'v1.');
    expect(new SecretBox([present, first]).open(nameless, 'a')).toBe('a token');
  });
});
