import { condition, isCancellation, log, proxyActivities, setHandler } from '@temporalio/workflow';
import type { VideoActivities, VideoRecordActivities } from '../activities/videos.js';
import type { SeenVideo, VideoEnding, VideoStatus } from '../src/types/videos.js';
import { failureReason } from './failure-reason.js';
import { videoChanged } from './generate-video-messages.js';
import { MEDIA_TASK_QUEUE } from './ids.js';
import { proxyRecords } from './records.js';
import * as retries from './retries.js';

/** Milliseconds between two readings of the prediction, in case its report is lost. */
const POLL_MS = 30_000;

const taskQueue = MEDIA_TASK_QUEUE;

/**
 * Makes a video, by the id of its row: requests a prediction, waits for its end and fetches the file. All texts and
 * addresses are in rows and at the provider. Returns the video's final status, or undefined without the row.
 */
export async function generateVideo(id: string): Promise<VideoStatus | undefined> {
  const records = proxyRecords<VideoRecordActivities>();
  let changes = 0;
  setHandler(videoChanged, () => {
    changes += 1;
  });
  return records.settleVideo(id, await carriedOut());

  /** Carries the video out; returns how it ends unless a step has ended it. */
  async function carriedOut(): Promise<VideoEnding | undefined> {
    const video = await records.openVideo(id);
    if (!video) return undefined;
    const endsAt = Date.now() + video.leftMs;
    if (video.isNew) {
      const predictionId = await attempt(() => requestVideo(id));
      if (predictionId === FAILED) return 'unreached';
      if (predictionId === undefined) return undefined;
      await records.noteVideo(id, predictionId);
    }
    const seen = await lastSeen(endsAt);
    if (seen === 'ended') return undefined;
    if (seen === 'succeeded') {
      return (await attempt(() => storeVideo(id))) === FAILED ? 'unfetched' : undefined;
    }
    await attempt(() => cancelVideo(id));
    return 'late';
  }

  /** Waits until the prediction has ended, is to be cancelled, or takes too long. */
  async function lastSeen(endsAt: number): Promise<SeenVideo> {
    for (;;) {
      const known = changes;
      const seen = await attempt(() => checkVideo(id));
      if (seen !== FAILED && seen !== 'running') return seen;
      const leftMs = endsAt - Date.now();
      if (leftMs <= 0) return 'running';
      await condition(() => changes > known, Math.min(POLL_MS, leftMs));
    }
  }
}

const { requestVideo } = proxyActivities<VideoActivities>({ ...retries.videoRequest, taskQueue });
const { checkVideo } = proxyActivities<VideoActivities>({ ...retries.videoCheck, taskQueue });
const { storeVideo } = proxyActivities<VideoActivities>({ ...retries.videoFile, taskQueue });
const { cancelVideo } = proxyActivities<VideoActivities>({ ...retries.videoCancel, taskQueue });

const FAILED = Symbol('a step that failed in all attempts');

async function attempt<T>(step: () => Promise<T>): Promise<T | typeof FAILED> {
  try {
    return await step();
  } catch (error) {
    if (isCancellation(error)) throw error;
    log.warn('a step of a video failed', { reason: failureReason(error) });
    return FAILED;
  }
}
