import { randomBytes } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { SecretBox, SecretUnreadableError } from '../../src/secrets/secret-box.js';

const box = new SecretBox(randomBytes(32));

describe('a sealed secret', () => {
  test.each(['', 'a token', 'ünïcödé 🔑', 'x'.repeat(100_000)])('opens again (%#)', (secret) => {
    expect(box.open(box.seal(secret, 'agent:1'), 'agent:1')).toBe(secret);
  });

  test('is sealed differently every time', () => {
    expect(box.seal('a token', 'agent:1')).not.toBe(box.seal('a token', 'agent:1'));
  });

  test('does not show the secret', () => {
    const sealed = box.seal('a token', 'agent:1');
    expect(sealed).not.toContain('a token');
    expect(Buffer.from(sealed.slice(3), 'base64url').includes('a token')).toBe(false);
  });

  test('does not open in another context', () => {
    const sealed = box.seal('a token', 'agent:1');
    expect(() => box.open(sealed, 'agent:2')).toThrow(SecretUnreadableError);
  });

  test('does not open with another key', () => {
    const sealed = box.seal('a token', 'agent:1');
    const other = new SecretBox(randomBytes(32));
    expect(() => other.open(sealed, 'agent:1')).toThrow(SecretUnreadableError);
  });

  test('does not open when any byte of it was changed', () => {
    const bytes = Buffer.from(box.seal('a token', 'agent:1').slice(3), 'base64url');
    for (let index = 0; index < bytes.length; index += 1) {
      const changed = Buffer.from(bytes);
      changed.writeUInt8(changed.readUInt8(index) ^ 1, index);
      const sealed = `v1.${changed.toString('base64url')}`;
      expect(() => box.open(sealed, 'agent:1')).toThrow(SecretUnreadableError);
    }
  });

  test('does not open when it was cut short, lengthened, or is something else', () => {
    const sealed = box.seal('a token', 'agent:1');
    for (const wrong of ['', 'v1.', 'a token', sealed.slice(0, -4), `${sealed}AAAA`]) {
      expect(() => box.open(wrong, 'agent:1')).toThrow(SecretUnreadableError);
    }
  });
});

test('a key that is not 32 bytes is refused', () => {
  expect(() => new SecretBox(randomBytes(16))).toThrow(RangeError);
});

test('a digest tells the same text in the same context, under the same key alone', () => {
  const digest = box.digest('1234', 'pin');
  expect(digest).toMatch(/^[0-9a-f]{64}$/);
  expect(box.digest('1234', 'pin')).toBe(digest);
  expect(box.digest('1235', 'pin')).not.toBe(digest);
  expect(box.digest('1234', 'other')).not.toBe(digest);
  expect(new SecretBox(randomBytes(32)).digest('1234', 'pin')).not.toBe(digest);
});
