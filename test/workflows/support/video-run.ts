import { randomUUID } from 'node:crypto';
import type { TestWorkflowEnvironment } from '@temporalio/testing';
import type { WorkflowBundleWithSourceMap } from '@temporalio/worker';
import type { SeenVideo, VideoStatus } from '../../../src/types/videos.js';
import { videoChanged } from '../../../workflows/generate-video-messages.js';
import type { generateVideo } from '../../../workflows/generate-video.js';
import { generateVideoId, MEDIA_TASK_QUEUE } from '../../../workflows/ids.js';
import { runAlone } from './run-alone.js';

const MAX_MS = 30 * 60_000;

/** A run of `generateVideo` with workers of its own, and the calls of its activities. */
export class VideoRun {
  readonly id = randomUUID();
  readonly workflowId = generateVideoId(this.id);
  readonly made: string[] = [];
  isNew = true;
  leftMs = MAX_MS;
  /** Requests the video. */
  request: () => Promise<string | undefined> = () => Promise.resolve('prediction');
  /** Reads the prediction; `reading` counts from 1. */
  check: (reading: number) => Promise<SeenVideo> = () => Promise.resolve('succeeded');
  store: () => Promise<void> = () => Promise.resolve();
  #readings = 0;

  async run(
    environment: TestWorkflowEnvironment,
    bundle: WorkflowBundleWithSourceMap,
  ): Promise<VideoStatus | undefined> {
    const { isNew, leftMs, made } = this;
    const activities = {
      openVideo: () => Promise.resolve({ isNew, leftMs }),
      noteVideo: (_id: string, predictionId: string) => {
        made.push(`note ${predictionId}`);
        return Promise.resolve();
      },
      settleVideo: (_id: string, ending?: string): Promise<VideoStatus> => {
        made.push(`settle ${ending ?? ''}`.trim());
        return Promise.resolve('completed');
      },
    };
    const provider = {
      requestVideo: () => this.#step('request', this.request),
      checkVideo: () => this.#step('check', () => this.check(++this.#readings)),
      storeVideo: () => this.#step('store', this.store),
      cancelVideo: () => this.#step('cancel', () => Promise.resolve()),
    };
    return runAlone(
      environment,
      bundle,
      {
        workflowId: this.workflowId,
        activities,
        elsewhere: { taskQueue: MEDIA_TASK_QUEUE, activities: provider },
      },
      (workflows, started) =>
        workflows.execute<typeof generateVideo>('generateVideo', { ...started, args: [this.id] }),
    );
  }

  /** Reports a change of the video, as its webhook does. */
  report(environment: TestWorkflowEnvironment): Promise<void> {
    return environment.client.workflow.getHandle(this.workflowId).signal(videoChanged);
  }

  #step<T>(name: string, work: () => Promise<T>): Promise<T> {
    this.made.push(name);
    return work();
  }
}
