import { describe, expect, test } from 'vitest';
import { IMAGE_TAG, runtimeImage, versionOf, withTag } from '../../src/containers/image-name.js';

const DIGEST = `sha256:${'0'.repeat(64)}`;

describe("an image's name", () => {
  test.each([
    ['agent', 'latest', 'agent:2'],
    ['agent:1.0', '1.0', 'agent:2'],
    ['ghcr.io/openclaw/openclaw:2026.9.6', '2026.9.6', 'ghcr.io/openclaw/openclaw:2'],
    ['localhost:5000/agent', 'latest', 'localhost:5000/agent:2'],
    ['localhost:5000/a/agent:1', '1', 'localhost:5000/a/agent:2'],
    [`agent@${DIGEST}`, DIGEST, 'agent:2'],
    [`localhost:5000/agent:1@${DIGEST}`, '1', 'localhost:5000/agent:2'],
  ])('%s has the version %s', (image, version, other) => {
    expect(versionOf(image)).toBe(version);
    expect(withTag(image, '2')).toBe(other);
  });

  test.each(['1', 'latest', '2026.9.6-rc.1', '_x', 'A'.repeat(128)])('takes the tag %s', (tag) => {
    expect(tag).toMatch(IMAGE_TAG);
    expect(versionOf(withTag('localhost:1/agent', tag))).toBe(tag);
  });

  test.each(['', '.x', '-x', 'a b', 'a/b', 'a:b', 'a@b', 'a\n', 'A'.repeat(129)])(
    'does not take %j for a tag',
    (tag) => {
      expect(tag).not.toMatch(IMAGE_TAG);
    },
  );

  test('is for new agents what is set, or else the official one of the set version', () => {
    const runtimeVersion = '1.2.3';
    expect(runtimeImage({ runtimeImage: 'mine:4', runtimeVersion })).toBe('mine:4');
    expect(runtimeImage({ runtimeImage: undefined, runtimeVersion })).toBe(
      'ghcr.io/openclaw/openclaw:1.2.3',
    );
  });
});
