/** Aborted as soon as everything is to end: nothing new is started from then on. */
export const stopping = new AbortController();
