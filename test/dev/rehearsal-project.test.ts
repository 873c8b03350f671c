import { expect, test } from 'vitest';
import { jobsOf, servicesOf, startInOrder } from '../../dev/rehearsal/project.js';

const after = (...names: readonly string[]) =>
  Object.fromEntries(names.map((name) => [name, { condition: 'service_healthy' }]));

const PROJECT = {
  services: {
    api: {
      image: 'ours:1.0',
      depends_on: {
        migrate: { condition: 'service_completed_successfully' },
        redis: { condition: 'service_healthy' },
      },
    },
    migrate: { image: 'ours:1.0', depends_on: after('postgres') },
    postgres: { image: 'postgres:18.4', command: ['sh', '-c', 'echo $$(cat /run/secrets/a)'] },
    redis: { image: 'redis:8.2', command: null },
  },
};

test('starts a service when everything that it waits for is up', async () => {
  const events: string[] = [];
  await startInOrder(servicesOf(PROJECT), async (name) => {
    events.push(`start ${name}`);
    await Promise.resolve();
    events.push(`up ${name}`);
  });
  const at = (event: string) => events.indexOf(event);
  expect(at('up postgres')).toBeLessThan(at('start migrate'));
  expect(at('up migrate')).toBeLessThan(at('start api'));
  expect(at('up redis')).toBeLessThan(at('start api'));
  expect(at('start redis')).toBeLessThan(at('start migrate'));
});

test('starts nothing after a service that failed', async () => {
  const started: string[] = [];
  const starting = startInOrder(servicesOf(PROJECT), (name) => {
    started.push(name);
    return name === 'migrate' ? Promise.reject(new Error('no migration')) : Promise.resolve();
  });
  await expect(starting).rejects.toThrow('no migration');
  expect(started).not.toContain('api');
});

test('reads dollar signs as a container gets them, and recognizes services that are jobs', () => {
  const services = servicesOf(PROJECT);
  expect(services.postgres?.command).toEqual(['sh', '-c', 'echo $(cat /run/secrets/a)']);
  expect([...jobsOf(services)]).toEqual(['migrate']);
});
