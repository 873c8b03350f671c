import { expect, it } from 'vitest';
import { DeathCauses } from '../../../src/docker/containers/death-cause.js';
import type { DockerEvent } from '../../../src/docker/containers/docker-events.js';

const SECOND = 1_000_000_000n;

const event = (action: DockerEvent['action'], more: Partial<DockerEvent> = {}): DockerEvent => ({
  action,
  containerId: 'c',
  agentId: 'a',
  userId: 'u',
  exitCode: null,
  signal: undefined,
  at: SECOND,
  ...more,
});
const die = (exitCode: number, at = 2n * SECOND) => event('die', { exitCode, at });

it('reports a SIGKILL without a preceding SIGTERM as a kill at once', () => {
  const causes = new DeathCauses();
  causes.record(event('kill', { signal: '9' }));
  expect(causes.record(die(137))).toMatchObject({ cause: 'kill', exitCode: 137, at: 2_000 });
});

it('waits a limited time for the stop that a signal may belong to', () => {
  const causes = new DeathCauses();
  for (const signal of ['15', '9']) causes.record(event('kill', { signal }));
  expect(causes.record(die(137), 0)).toBeUndefined();
  const dueIn = causes.dueIn(0) ?? 0;
  expect([...causes.due(dueIn - 1)]).toEqual([]);
  expect([...causes.due(dueIn)]).toMatchObject([{ cause: 'kill' }]);
  expect(causes.dueIn()).toBeUndefined();
});

it('reports oom even if its event follows the death', () => {
  const causes = new DeathCauses();
  expect(causes.record(die(137), 0)).toBeUndefined();
  expect(causes.record(event('oom'), 1)).toMatchObject({ cause: 'oom', exitCode: 137 });
  causes.record(event('oom'));
  expect(causes.record(die(137))).toMatchObject({ cause: 'oom' });
});

it('does not report oom for a child process or an old event', () => {
  const causes = new DeathCauses();
  causes.record(event('oom'));
  expect(causes.record(die(3))).toMatchObject({ cause: 'exit', exitCode: 3 });
  causes.record(event('oom'));
  expect(causes.record(die(137, 3_600n * SECOND))).toBeUndefined();
  expect([...causes.due()]).toMatchObject([{ cause: 'kill', exitCode: 137 }]);
});

it('reports a kill that follows the lack of memory of a child process', () => {
  const causes = new DeathCauses();
  causes.record(event('oom'));
  causes.record(event('kill', { signal: '9', at: 2n * SECOND }));
  expect(causes.record(die(137, 3n * SECOND))).toMatchObject({ cause: 'kill' });
  causes.record(event('kill', { signal: '15' }));
  causes.record(event('oom', { at: 2n * SECOND }));
  expect(causes.record(die(137, 3n * SECOND))).toMatchObject({ cause: 'oom' });
});

it('reports a pending death as soon as the container starts again', () => {
  const causes = new DeathCauses();
  expect(causes.record(die(137))).toBeUndefined();
  expect(causes.record(event('start'))).toMatchObject({ cause: 'kill' });
});

it('ignores a signal that is old or from the previous run', () => {
  const causes = new DeathCauses();
  causes.record(event('kill', { signal: '1' }));
  expect(causes.record(die(3, 120n * SECOND))).toMatchObject({ cause: 'exit', exitCode: 3 });
  causes.record(event('kill', { signal: '15' }));
  causes.record(event('start'));
  expect(causes.record(die(0))).toMatchObject({ cause: 'exit' });
});

it.each([
  [128, 'exit'],
  [129, 'kill'],
])('exit code %i has the cause: %s', (exitCode, cause) => {
  expect(new DeathCauses().record(die(exitCode))).toMatchObject({ cause, exitCode });
});
