import { randomUUID } from 'node:crypto';
import { Worker } from '@temporalio/worker';
import { pino } from 'pino';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { createVideoActivities, createVideoRecordActivities } from '../../activities/videos.js';
import { videoRuns } from '../../temporal/row-runs.js';
import { handOverPeriodically } from '../../worker/hand-over.js';
import { videos } from '../../worker/handed-rows.js';
import { generateVideoId, MEDIA_TASK_QUEUE, PLATFORM_TASK_QUEUE } from '../../workflows/ids.js';
import type { Person } from '../money/wallets/support.js';
import { textsOfHistories } from '../support/histories.js';
import { testTemporal, workerLog, workflowCode, type TestTemporal } from '../support/temporal.js';
import { until } from '../support/until.js';
import { videoSite, type VideoSite } from './support.js';

const PROMPT = `A sunrise ${randomUUID()}`;

let site: VideoSite;
let temporal: TestTemporal;
let ada: Person;
let stop: () => Promise<unknown>;

beforeAll(async () => {
  [site, temporal] = await Promise.all([videoSite(), testTemporal()]);
  ada = await site.customer();
  stop = await startWorkers();
});
afterAll(async () => {
  await stop?.();
  await temporal?.close();
  await site?.close();
});
beforeEach(() => {
  site.provider.faults = {};
});

async function startWorkers(): Promise<() => Promise<unknown>> {
  const { client, connection, namespace } = temporal;
  const { videoSteps, videoStore } = site.services;
  const common = { connection, namespace };
  const workers = await Promise.all([
    Worker.create({
      ...common,
      ...(await workflowCode()),
      taskQueue: PLATFORM_TASK_QUEUE,
      activities: createVideoRecordActivities(videoStore),
    }),
    Worker.create({
      ...common,
      taskQueue: MEDIA_TASK_QUEUE,
      activities: createVideoActivities(videoSteps),
    }),
  ]);
  const running = workers.map((worker) => worker.run());
  const ending = new AbortController();
  const parts = { database: site.database.db, log: pino({ level: 'silent' }) };
  const rows = videos(videoStore, videoRuns(client));
  const handing = handOverPeriodically(parts, rows, ending.signal);
  return () => {
    ending.abort();
    for (const worker of workers) worker.shutdown();
    return Promise.all([handing, ...running]);
  };
}

const becomes = (id: string, status: string) =>
  until(async () => {
    const video = await site.get(ada, id);
    return video.status === status && video;
  }, 60_000);

/** Waits until the provider works on the video, and the row names the prediction. */
const asked = (id: string) =>
  until(async () => {
    const [row] = await site.database.db
      .asPlatform()
      .query<{ predictionId: string }>(
        'SELECT prediction_id AS "predictionId" FROM videos WHERE id = $id AND prediction_id IS NOT NULL',
        { id },
      );
    return row?.predictionId;
  });

test('a video is made, reported by a webhook, and its file is the one of the provider', async () => {
  const { provider } = site;
  const id = await site.create(ada, { prompt: PROMPT, duration: 2, aspectRatio: '1:1' });
  const predictionId = await asked(id);
  expect(provider.predictions.get(predictionId)).toMatchObject({
    model: 'stand-in/video',
    input: { prompt: PROMPT, duration: 2, aspect_ratio: '1:1' },
    webhook: expect.stringMatching(/\/api\/webhooks\/video$/),
    events: ['completed'],
  });
  expect((await site.get(ada, id)).status).toBe('processing');
  provider.finish(predictionId);
  const event = { id: predictionId, status: 'succeeded' };
  expect((await site.deliver(event)).body).toEqual({ received: true, handled: true });
  const video = await becomes(id, 'completed');
  expect(video).toMatchObject({
    url: `/api/generate-video/${id}/file`,
    size: provider.sample.length,
    contentType: 'video/mp4',
    error: null,
  });
  const file = await site.web(ada, 'GET', video.url ?? '');
  expect([file.status, file.headers.get('content-type')]).toEqual([200, 'video/mp4']);
  const described = await temporal.client.workflow.getHandle(generateVideoId(id)).describe();
  expect(await described.staticSummary()).toBe(`Video ${id}`);
});

test('a video that fails at the provider has the reason, and is not requested again', async () => {
  site.provider.faults = { end: 'failed' };
  const id = await site.create(ada);
  const predictionId = await asked(id);
  site.provider.finish(predictionId);
  await site.deliver({ id: predictionId, status: 'failed' });
  const { error } = await becomes(id, 'failed');
  expect(error).toBe('The provider failed: The model ran out of memory');
});

test('a video whose worker ends in the middle continues, and is requested once', async () => {
  const requests = () => site.provider.requests.filter((each) => each.includes('/models/')).length;
  const before = requests();
  const id = await site.create(ada);
  const predictionId = await asked(id);
  await stop();
  site.provider.finish(predictionId);
  expect((await site.deliver({ id: predictionId, status: 'succeeded' })).body.handled).toBe(true);
  stop = await startWorkers();
  await becomes(id, 'completed');
  expect(requests()).toBe(before + 1);
});

test('a file that breaks off is fetched again, and no part of it remains', async () => {
  site.provider.faults = { file: 'half' };
  const id = await site.create(ada);
  const predictionId = await asked(id);
  site.provider.finish(predictionId);
  await site.deliver({ id: predictionId, status: 'succeeded' });
  await becomes(id, 'uploading');
  const tries = () => site.provider.requests.filter((each) => each.includes(`${predictionId}/out`));
  await until(() => Promise.resolve(tries().length > 1));
  expect(await site.files()).not.toContain(id);
  site.provider.faults = {};
  await becomes(id, 'completed');
  expect((await site.files()).filter((name) => name.startsWith(id))).toEqual([id]);
});

test(
  'no history or log has a prompt, a token or the address of a file',
  { tags: 'attack' },
  async () => {
    const { texts } = await textsOfHistories(temporal.client);
    expect(texts.some((text) => text.includes('checkVideo'))).toBe(true);
    const { VIDEO_API_TOKEN = '', VIDEO_WEBHOOK_SECRET = '' } = site.provider.env;
    for (const text of [texts.join('\n'), site.logged.join('\n'), workerLog.join('\n')]) {
      for (const secret of [PROMPT, VIDEO_API_TOKEN, VIDEO_WEBHOOK_SECRET, 'out.mp4']) {
        expect(text).not.toContain(secret);
      }
    }
  },
);
