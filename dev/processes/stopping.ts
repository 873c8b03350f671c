/** Aborted when everything must stop: no process is started afterwards. */
export const stopping = new AbortController();
