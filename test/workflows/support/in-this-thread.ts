/** Worker options that run workflows in this thread: a separate thread costs each test 0.5 s of CPU. */
export const IN_THIS_THREAD = { debugMode: true } as const;
