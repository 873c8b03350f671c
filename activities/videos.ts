import { Context } from '@temporalio/activity';
import type { VideoSteps } from '../src/videos/video-steps.js';
import type { VideoStore } from '../src/videos/video-store.js';
import type { VideoEnding } from '../src/types/videos.js';
import { asApplicationFailure } from './failures.js';

/** Creates the activities that only read and write rows of videos. */
export const createVideoRecordActivities = (
  store: Pick<VideoStore, 'note' | 'open' | 'settle'>,
) => ({
  openVideo: (id: string) => asApplicationFailure(() => store.open(id)),
  noteVideo: (id: string, predictionId: string) =>
    asApplicationFailure(() => store.note(id, predictionId)),
  settleVideo: (id: string, ending: VideoEnding | undefined) =>
    asApplicationFailure(() => store.settle(id, ending)),
});

export type VideoRecordActivities = ReturnType<typeof createVideoRecordActivities>;

/** Creates the activities that call the provider, on a worker that has the folder of media. */
export const createVideoActivities = (steps: VideoSteps) => {
  const step = <T>(work: (signal: AbortSignal) => Promise<T>) =>
    asApplicationFailure(() => work(Context.current().cancellationSignal));
  return {
    requestVideo: (id: string) => step((signal) => steps.request(id, signal)),
    checkVideo: (id: string) => step((signal) => steps.check(id, signal)),
    storeVideo: (id: string) =>
      step((signal) => steps.fetch(id, signal, () => Context.current().heartbeat())),
    cancelVideo: (id: string) => step((signal) => steps.cancel(id, signal)),
  };
};

export type VideoActivities = ReturnType<typeof createVideoActivities>;
