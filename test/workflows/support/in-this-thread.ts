/** Of a worker that runs workflows: a thread of its own for them costs each test half a second of processor. */
export const IN_THIS_THREAD = { debugMode: true } as const;
