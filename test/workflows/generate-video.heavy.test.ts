import { ApplicationFailure } from '@temporalio/common';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { VideoRun } from './support/video-run.js';
import { bundleWorkflows, WorkflowLab } from './support/workflow-lab.js';

let lab: WorkflowLab;
let bundle: Awaited<ReturnType<typeof bundleWorkflows>>;
beforeAll(async () => {
  lab = await WorkflowLab.open();
  bundle = await bundleWorkflows();
});
afterAll(() => lab?.close());

const run = (video: VideoRun) => video.run(lab.environment, bundle);
/** Returns the milliseconds of a run; the server skips further once the run has closed. */
async function durationOf({ workflowId }: VideoRun): Promise<number> {
  const { closeTime, startTime } = await lab.environment.client.workflow
    .getHandle(workflowId)
    .describe();
  return (closeTime?.getTime() ?? Infinity) - startTime.getTime();
}

const REFUSED = () => Promise.reject(ApplicationFailure.nonRetryable('The provider is away'));

test('a video without a webhook is read every 30 seconds until it has ended', async () => {
  const video = new VideoRun();
  const times: number[] = [];
  video.check = async (reading) => {
    times.push(await lab.environment.currentTimeMs());
    return reading < 4 ? 'running' : 'succeeded';
  };
  await run(video);
  expect(video.made).toEqual([
    ...['request', 'note prediction', 'check', 'check', 'check', 'check', 'store', 'settle'],
  ]);
  const [first = 0, , , last = 0] = times;
  expect(Math.round((last - first) / 1_000)).toBeCloseTo(90, -1);
});

test('a video that exceeds its time limit is cancelled at the provider', async () => {
  const video = new VideoRun();
  // Each reading replays the run: the 30 minutes of the row would take 20 s of CPU.
  video.leftMs = 3 * 60_000;
  video.check = () => Promise.resolve('running');
  await run(video);
  const minutes = (await durationOf(video)) / 60_000;
  expect(minutes).toBeGreaterThanOrEqual(3);
  expect(minutes).toBeLessThan(5);
  expect(video.made.slice(-3)).toEqual(['check', 'cancel', 'settle late']);
  expect(video.made.filter((each) => each === 'check').length).toBeLessThan(10);
});

test('a report before the answer to the request is not lost', async () => {
  const video = new VideoRun();
  video.request = async () => {
    await video.report(lab.environment);
    return 'prediction';
  };
  await run(video);
  expect(await durationOf(video)).toBeLessThan(30_000);
  expect(video.made).toEqual(['request', 'note prediction', 'check', 'store', 'settle']);
});

test('a report during a reading leads to another one at once', async () => {
  const video = new VideoRun();
  video.check = async (reading) => {
    if (reading > 1) return 'succeeded';
    await video.report(lab.environment);
    return 'running';
  };
  await run(video);
  expect(await durationOf(video)).toBeLessThan(30_000);
  expect(video.made.filter((each) => each === 'check')).toHaveLength(2);
});

test('a video that was requested before is not requested again', async () => {
  const video = new VideoRun();
  video.isNew = false;
  await run(video);
  expect(video.made).toEqual(['check', 'store', 'settle']);
});

test('a video whose time is over is read once more, and then cancelled', async () => {
  const video = new VideoRun();
  Object.assign(video, { isNew: false, leftMs: 0 });
  video.check = () => Promise.resolve('running');
  await run(video);
  expect(video.made).toEqual(['check', 'cancel', 'settle late']);
});

test('a cancelled video is cancelled at the provider', async () => {
  const video = new VideoRun();
  video.check = () => Promise.resolve('cancelled');
  await run(video);
  expect(video.made.slice(-2)).toEqual(['cancel', 'settle late']);
});

test.each([
  ['request', 'unreached'],
  ['store', 'unfetched'],
] as const)('a video whose step %s fails in all attempts ends as %s', async (step, ending) => {
  const video = new VideoRun();
  video[step] = REFUSED;
  await run(video);
  expect(video.made.at(-1)).toBe(`settle ${ending}`);
});

test('a video whose request was refused is not read', async () => {
  const video = new VideoRun();
  video.request = () => Promise.resolve(undefined);
  await run(video);
  expect(video.made).toEqual(['request', 'settle']);
});

test('a temporarily unavailable provider is read again', async () => {
  const video = new VideoRun();
  video.check = (reading) => (reading < 3 ? REFUSED() : Promise.resolve('succeeded'));
  await run(video);
  expect(video.made.filter((each) => each === 'check')).toHaveLength(3);
  expect(video.made.slice(-2)).toEqual(['store', 'settle']);
});
