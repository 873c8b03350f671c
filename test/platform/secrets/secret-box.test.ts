import { randomBytes } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { ringOf } from '../../../src/platform/secrets/key-ring.js';
import { SecretBox, SecretUnreadableError } from '../../../src/platform/secrets/secret-box.js';

const box = new SecretBox(ringOf(randomBytes(32)));

describe('sealed secrets', { tags: 'attack' }, () => {
  test.each(['', 'a token', 'ünïcödé 🔑', 'x'.repeat(100_000)])(
    'opens a sealed secret (%#)',
    (secret) => {
      expect(box.open(box.seal(secret, 'agent:1'), 'agent:1')).toBe(secret);
    },
  );

  test('seals the same secret differently every time', () => {
    expect(box.seal('a token', 'agent:1')).not.toBe(box.seal('a token', 'agent:1'));
  });

  test('hides the secret in its sealed form', () => {
    const sealed = box.seal('a token', 'agent:1');
    expect(sealed).not.toContain('a token');
    expect(Buffer.from(sealed.slice(5), 'base64url').includes('a token')).toBe(false);
  });

  test('does not open a sealed secret in another context', () => {
    const sealed = box.seal('a token', 'agent:1');
    expect(() => box.open(sealed, 'agent:2')).toThrow(SecretUnreadableError);
  });

  test('does not open a sealed secret with another key', () => {
    const sealed = box.seal('a token', 'agent:1');
    const other = new SecretBox(ringOf(randomBytes(32)));
    expect(() => other.open(sealed, 'agent:1')).toThrow(SecretUnreadableError);
  });

  test('does not open a sealed secret with any byte changed', () => {
    const bytes = Buffer.from(box.seal('a token', 'agent:1').slice(5), 'base64url');
    for (let index = 0; index < bytes.length; index += 1) {
      const changed = Buffer.from(bytes);
      changed.writeUInt8(changed.readUInt8(index) ^ 1, index);
      const sealed = `v1.1.${changed.toString('base64url')}`;
      expect(() => box.open(sealed, 'agent:1')).toThrow(SecretUnreadableError);
    }
  });

  test('does not open a value that was cut short or lengthened, or that is no sealed secret', () => {
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

test('rejects a key that is not 32 bytes long', () => {
  expect(() => new SecretBox(ringOf(randomBytes(16)))).toThrow(RangeError);
});

test('returns equal digests only for the same text, context and key', () => {
  const digest = box.digest('1234', 'pin');
  expect(digest).toMatch(/^[0-9a-f]{64}$/);
  expect(box.digest('1234', 'pin')).toBe(digest);
  expect(box.digest('1235', 'pin')).not.toBe(digest);
  expect(box.digest('1234', 'other')).not.toBe(digest);
  expect(new SecretBox(ringOf(randomBytes(32))).digest('1234', 'pin')).not.toBe(digest);
});

describe('key ring', () => {
  const [old, present] = [
    { id: 'old', key: randomBytes(32) },
    { id: 'new', key: randomBytes(32) },
  ];
  const before = new SecretBox([old]);
  const during = new SecretBox([present, old]);
  const after = new SecretBox([present]);

  test('seals with the first key of a ring, names it in the sealed value, and opens with all keys', () => {
    const [sealed, resealed] = [before.seal('a token', 'a'), during.seal('a token', 'a')];
    expect(sealed).toMatch(/^v1\.old\./);
    expect(resealed.startsWith(after.prefix)).toBe(true);
    expect(during.open(sealed, 'a')).toBe('a token');
    expect(after.open(resealed, 'a')).toBe('a token');
    expect(() => after.open(sealed, 'a')).toThrow(SecretUnreadableError);
  });

  test('rewraps a value under the first key of the ring, in the same context only', () => {
    const rewrapped = during.rewrap(before.seal('a token', 'a'), 'a');
    expect(after.open(rewrapped, 'a')).toBe('a token');
    expect(() => after.open(rewrapped, 'b')).toThrow(SecretUnreadableError);
    expect(() => during.rewrap(before.seal('a token', 'a'), 'b')).toThrow(SecretUnreadableError);
  });

  test('returns the digest under each key of the ring', () => {
    expect(during.digests('1', 'a')).toEqual([after.digest('1', 'a'), before.digest('1', 'a')]);
  });

  test('opens a value sealed before keys had names with the key named 1', () => {
    const first = { id: '1', key: old.key };
    const nameless = new SecretBox([first]).seal('a token', 'a').replace('v1.1.', 'v1.');
    expect(new SecretBox([present, first]).open(nameless, 'a')).toBe('a token');
  });
});
