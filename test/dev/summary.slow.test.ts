import { expect, test } from 'vitest';
import { readSettings } from '../../dev/settings.js';
import { summary } from '../../dev/summary.js';

test.each([
  ['an engine of our own, which no docker looks for', 'unix:///run/ours/docker.sock'],
  ['the engine that docker asks by itself', undefined],
])('the tour exports DOCKER_HOST if docker needs it to reach the agents: %s', (_, ownDocker) => {
  const reported = summary(readSettings({}), {}, { isFirst: true, ownDocker, firstIsAdmin: false });
  const exported = reported.split('\n').filter((line) => line.startsWith('export DOCKER_HOST='));
  expect(exported).toEqual(ownDocker === undefined ? [] : [`export DOCKER_HOST=${ownDocker}`]);
});

test.each([
  ['asks the agent if a provider is set up', { OPENAI_API_KEY: 'k' }, true],
  ['asks nothing without a provider', {}, false],
])('the tour %s', (_, env, isAsked) => {
  const found = { isFirst: true, ownDocker: undefined, firstIsAdmin: false };
  const commands = summary(readSettings(env), {}, found);
  expect([commands.includes('/api/chat'), commands.includes('git-sync')]).toEqual([
    isAsked,
    isAsked,
  ]);
});
