import { expect, test } from 'vitest';
import { containerOptions } from '../../../src/docker/containers/container-profile.js';
import { LABEL } from '../../../src/docker/containers/container-spec.js';

const SPEC = {
  agentId: 'agent-1',
  userId: 'user-1',
  image: 'registry.example/agent:1',
  port: 40_001,
  subnet: '10.231.0.16/28',
  env: { B: '2', A: '1' },
  secrets: {},
  files: {},
};

// Another fingerprint recreates the container of every agent at its next start.
test('a container of an earlier release has the fingerprint of the same specification now', () => {
  const { Labels: labels } = containerOptions(SPEC, { installation: 'installation-1', labels: {} });
  expect(labels?.[LABEL.spec]).toBe(
    'fec242ca54644f6d500e1c3883d7c38056b378a414fc40028dd6e686398ceb63',
  );
});
