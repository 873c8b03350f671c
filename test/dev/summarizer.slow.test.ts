import { afterEach, beforeEach, expect, test } from 'vitest';
import { Place } from './launcher.js';

let place: Place;
beforeEach(async () => {
  place = await Place.make();
});
afterEach(() => place.close());

test('npm run summarizer serves only the summarizer and ends cleanly with npm', async () => {
  const npm = place.startByNpm('summarizer');
  await npm.printed('The summarizer is at ');
  const [, url = ''] = /The summarizer is at (http:\S+)/.exec(npm.output) ?? [];
  expect(await (await fetch(`${url}/health`)).json()).toMatchObject({ status: 'ok' });
  expect(await place.processes()).toEqual([]);
  npm.kill('SIGTERM');
  await npm.ended;
  const isGone = () =>
    fetch(url).then(
      () => false,
      () => true,
    );
  await expect.poll(isGone).toBe(true);
});
