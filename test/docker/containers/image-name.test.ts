import { describe, expect, test } from 'vitest';
import {
  IMAGE_TAG,
  isLocalImage,
  isPinned,
  listedName,
  runtimeImages,
  versionOf,
  withTag,
} from '../../../src/docker/containers/image-name.js';

const DIGEST = `sha256:${'0'.repeat(64)}`;

describe('image name', () => {
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

  test.each(['1', 'latest', '2026.9.6-rc.1', '_x', 'A'.repeat(128)])(
    'accepts the tag %s',
    (tag) => {
      expect(tag).toMatch(IMAGE_TAG);
      expect(versionOf(withTag('localhost:1/agent', tag))).toBe(tag);
    },
  );

  test.each(['', '.x', '-x', 'a b', 'a/b', 'a:b', 'a@b', 'a\n', 'A'.repeat(129)])(
    'rejects the tag %j',
    (tag) => {
      expect(tag).not.toMatch(IMAGE_TAG);
    },
  );

  test('new agents use the configured image, or else the official image of the configured version', () => {
    const official = { runtimeImage: undefined, runtimeVersion: '1.2.3', versions: [] };
    expect(runtimeImages({ ...official, runtimeImage: 'mine:4' }).usual).toBe('mine:4');
    expect(runtimeImages(official).usual).toBe('ghcr.io/openclaw/openclaw:1.2.3');
    const versions = [
      { version: '1.2.3', digest: DIGEST },
      { version: '1.2.4', digest: undefined },
    ];
    const { usual, versions: allowed } = runtimeImages({ ...official, versions });
    expect(usual).toBe(`ghcr.io/openclaw/openclaw:1.2.3@${DIGEST}`);
    expect([...allowed]).toEqual([
      ['1.2.3', usual],
      ['1.2.4', 'ghcr.io/openclaw/openclaw:1.2.4'],
    ]);
    expect([...runtimeImages({ ...official, runtimeImage: 'mine:4', versions }).versions]).toEqual([
      ['1.2.3', `mine:1.2.3@${DIGEST}`],
      ['4', 'mine:4'],
      ['1.2.4', 'mine:1.2.4'],
    ]);
  });

  test.each([
    ['agent', true],
    ['agent:1', true],
    ['agent-platform/openclaw:1', true],
    ['library/agent', true],
    ['localhost/agent', true],
    ['agent-platform.invalid/openclaw:1', true],
    ['agent-platform.invalid:443/openclaw:1', true],
    ['localhost:5000/agent', false],
    ['127.0.0.1:5000/agent', false],
    ['docker.io/library/agent', false],
    ['ghcr.io/openclaw/openclaw:1', false],
    ['invalid.example/agent', false],
  ])('%s is a local image, never pulled: %s', (image, local) => {
    expect(isLocalImage(image)).toBe(local);
  });

  test('only a full digest pins an image', () => {
    expect(isPinned(`ghcr.io/a/b:1@${DIGEST}`)).toBe(true);
    expect(isPinned(`b@${DIGEST}`)).toBe(true);
    for (const image of ['b', 'b:1', 'b@sha256:1', `b@${DIGEST}0`]) {
      expect(isPinned(image)).toBe(false);
    }
  });

  test.each([
    ['docker.io/library/agent:1', 'agent:1'],
    ['docker.io/a/agent', 'a/agent:latest'],
    [`ghcr.io/a/b:1@${DIGEST}`, `ghcr.io/a/b@${DIGEST}`],
    ['localhost:5000/a:1', 'localhost:5000/a:1'],
  ])('%s is listed as %s', (image, listed) => {
    expect(listedName(image)).toBe(listed);
  });
});
