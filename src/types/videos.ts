export const VIDEO_STATUSES = [
  'queued',
  'processing',
  'uploading',
  'completed',
  'failed',
  'cancelled',
] as const;

export type VideoStatus = (typeof VIDEO_STATUSES)[number];

export const ASPECT_RATIOS = ['16:9', '9:16', '1:1'] as const;

export type AspectRatio = (typeof ASPECT_RATIOS)[number];

/** Reasons for which a run ends a video that no step has ended. */
export type VideoEnding = 'unreached' | 'late' | 'unfetched';

/** A video whose run has work left. */
export interface OpenVideo {
  /** True if the provider has not named a prediction yet. */
  readonly isNew: boolean;
  /** Milliseconds until the prediction is cancelled. */
  readonly leftMs: number;
}

/** The state of a video's prediction, as seen last. */
export type SeenVideo = 'running' | 'succeeded' | 'cancelled' | 'ended';
