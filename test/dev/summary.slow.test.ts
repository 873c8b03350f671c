import { expect, test } from 'vitest';
import { readSettings } from '../../dev/settings.js';
import { summary } from '../../dev/summary.js';

test.each([
  ['an engine of our own, which no docker looks for', 'unix:///run/ours/docker.sock'],
  ['the engine that docker asks by itself', undefined],
])('the tour exports DOCKER_HOST if docker needs it to reach the agents: %s', (_, ownDocker) => {
  const told = summary(readSettings({}), {}, { isFirst: true, ownDocker, firstIsAdmin: false });
  const exported = told.split('\n').filter((line) => line.startsWith('export DOCKER_HOST='));
  expect(exported).toEqual(ownDocker === undefined ? [] : [`export DOCKER_HOST=${ownDocker}`]);
});
