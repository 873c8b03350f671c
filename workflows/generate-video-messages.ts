import { defineSignal } from '@temporalio/workflow';

/** The provider has reported a change of the video, or the video is cancelled. */
export const videoChanged = defineSignal('videoChanged');
